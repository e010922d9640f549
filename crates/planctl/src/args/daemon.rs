//! The arguments of `planctl daemon` and `planctl dev`.

use clap::{Args, Subcommand, ValueEnum};

/// How much a daemon does at once.
#[derive(Args, Clone, Debug)]
pub struct AtOnce {
    /// How many workers it minds at once, of those that the runs' own settings name
    #[arg(short = 'j', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,
    /// How many contracts it runs at once [default: four for every core, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub gates: Option<u16>,
    /// Listen on this port too, beside the socket in the state directory: 127.0.0.1:7420
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// Let --listen be an address that other machines reach; put a proxy with TLS before it, whose https:// address clients name
    #[arg(long, requires = "listen")]
    pub allow_remote: bool,
    /// A name by which clients call it on that port, besides localhost; may be repeated
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    pub hosts: Vec<String>,
    /// Refuse further runs (429) while so many are not over
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_open_runs: u32,
    /// Refuse further runs (429) while so many asks wait for a person
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_open_asks: u32,
}

/// The commands of the daemon.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl daemon start                 in the background, until `planctl daemon stop`
  planctl daemon status
  planctl daemon install-service       let systemd start it and mind it")]
pub enum DaemonCommand {
    /// Runs it in the foreground, until Ctrl-C or SIGTERM
    #[command(before_help = "Examples:
  planctl daemon run
  planctl daemon run -j 8 --log-format json     for a service manager that collects logs")]
    Run {
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
        /// How logs are written to standard error
        #[arg(long, value_enum, default_value = "human")]
        log_format: LogFormat,
        /// Leave the terminal that it was started from
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Starts it in the background and waits until it is ready
    Start {
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
    },
    /// Stops it and starts it again in the background, with the options that it had
    Restart,
    /// Stops it: nothing more is taken on, and what is under way is handed back within 10 s
    Stop,
    /// Says whether it is there, and how it is; exits 69 where it is not
    Status,
    /// Prints what a daemon that was started with `daemon start` has logged
    Logs {
        /// Go on as it logs more
        #[arg(short, long)]
        follow: bool,
        /// Only so many of the last lines
        #[arg(long, value_name = "LINES", default_value_t = 100)]
        tail: usize,
    },
    /// Brings the database's schema up to date; it is never taken back to an older one
    Migrate {
        /// Only say where it stands; exits 1 where it is to be brought up to date
        #[arg(long)]
        check: bool,
    },
    /// Writes a unit for systemd that starts the daemon, watches it and fences it in
    #[command(before_help = "Examples:
  planctl daemon install-service --print        read it first
  planctl daemon install-service                for yourself; as root for the system
  planctl daemon install-service --listen 127.0.0.1:7420
  sudo planctl daemon install-service --system --run-as ann")]
    InstallService {
        /// For the person who types this [default, unless root]
        #[arg(long, conflicts_with = "system")]
        user: bool,
        /// For the system [default as root]
        #[arg(long)]
        system: bool,
        /// With --system: whose rights the daemon, its workers and its contracts have [default: root's]
        #[arg(long, value_name = "NAME", conflicts_with = "user")]
        run_as: Option<String>,
        /// Print the unit, write nothing
        #[arg(long)]
        print: bool,
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
    },
}

/// How logs are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Human,
    /// One JSON object per line
    Json,
}
