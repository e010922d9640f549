//! `-A`, `-W` and `-D`: read in the order they were typed, which decides.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use planctl_lang::{Levels, Wish};

/// How much each code weighs, as wished on the command line.
#[derive(Clone, Debug, Default)]
pub struct LevelFlags(pub Levels);

const FLAGS: [(Wish, &str, char, &str); 3] = [
    (Wish::Allow, "allow", 'A', "Do not report these codes, or any `warnings`"),
    (Wish::Warn, "warn", 'W', "Report these codes as warnings"),
    (
        Wish::Deny,
        "deny",
        'D',
        "Report these codes, or all `warnings`, as errors; the last of -A, -W and -D wins",
    ),
];

impl FromArgMatches for LevelFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LevelFlags, clap::Error> {
        let mut typed: Vec<(usize, Wish, &String)> = Vec::new();
        for (wish, name, _, _) in FLAGS {
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            typed.extend(places.zip(values).map(|(place, value)| (place, wish, value)));
        }
        typed.sort_by_key(|(place, _, _)| *place);
        let mut levels = Levels::default();
        for (_, wish, value) in typed {
            levels.add(wish, value.trim()).map_err(|unknown| {
                clap::Error::raw(ErrorKind::InvalidValue, format!("{}: {unknown}", flag(wish)))
            })?;
        }
        Ok(LevelFlags(levels))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LevelFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for LevelFlags {
    fn augment_args(command: Command) -> Command {
        FLAGS.into_iter().fold(command, |command, (_, name, short, help)| {
            let arg = Arg::new(name).long(name).short(short).value_name("CODE").help(help);
            command.arg(arg.action(ArgAction::Append).value_delimiter(','))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        LevelFlags::augment_args(command)
    }
}

fn flag(wish: Wish) -> &'static str {
    match wish {
        Wish::Allow => "-A",
        Wish::Warn => "-W",
        Wish::Deny => "-D",
    }
}
