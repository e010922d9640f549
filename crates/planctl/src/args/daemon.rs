//! The arguments of `planctl daemon` and `planctl dev`.

use clap::{Args, Subcommand, ValueEnum};

/// How much a daemon does at once, and where it listens.
#[derive(Args, Clone, Debug)]
pub struct AtOnce {
    /// How many workers to run at once, for runs that name their worker [default: 4]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
    /// How many contracts to run at once [default: four for every core, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub gates: Option<u16>,
    /// Also listen on this port, besides the socket in the state directory: 127.0.0.1:7420
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    pub listen: Option<std::net::SocketAddr>,
    /// Allow --listen an address that other machines can reach; put a TLS proxy in front, and let clients use its https:// address
    #[arg(long, requires = "listen")]
    pub allow_remote: bool,
    /// A host name that clients use for that port, besides localhost; may be repeated
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    pub hosts: Vec<String>,
    /// Refuse new runs (429) while this many are not over [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_open_runs: Option<u32>,
    /// Refuse new runs (429) while this many asks wait for a person [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_open_asks: Option<u32>,
}

/// The commands of the daemon.
#[derive(Subcommand, Clone, Debug)]
#[command(before_help = "Examples:
  planctl daemon start                 in the background, until `planctl daemon stop`
  planctl daemon status
  planctl daemon install-service       let systemd start it and restart it")]
pub enum DaemonCommand {
    /// Runs the daemon in the foreground, until Ctrl-C or SIGTERM
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
        /// Detach from the terminal
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Starts the daemon in the background, and waits until it is ready
    Start {
        /// How much is done at once.
        #[command(flatten)]
        work: AtOnce,
    },
    /// Stops the daemon and starts it again in the background, with the same options
    Restart,
    /// Stops the daemon: it accepts no more work, and hands back work in progress within 10 s
    Stop,
    /// Shows whether the daemon runs, and its state; exits 69 if it does not run
    Status,
    /// Prints the log of a daemon that `daemon start` started
    Logs {
        /// Keep printing as the log grows
        #[arg(short, long)]
        follow: bool,
        /// How many of the last lines to print
        #[arg(long, value_name = "LINES", default_value_t = 100)]
        tail: usize,
    },
    /// Brings the database's schema up to date; an older schema cannot be restored
    Migrate {
        /// Only say which version it has; exits 1 if it is not up to date
        #[arg(long)]
        check: bool,
    },
    /// Writes a systemd unit that starts the daemon, restarts it and confines it
    #[command(before_help = "Examples:
  planctl daemon install-service --print        read it first
  planctl daemon install-service                for yourself; as root for the system
  planctl daemon install-service --listen 127.0.0.1:7420
  sudo planctl daemon install-service --system --run-as ann")]
    InstallService {
        /// Install it for you alone [default, unless you are root]
        #[arg(long, conflicts_with = "system")]
        user: bool,
        /// Install it for the system [default if you are root]
        #[arg(long)]
        system: bool,
        /// With --system: the user that the daemon, its workers and its contracts run as [default: root]
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

fn parse_address(text: &str) -> Result<std::net::SocketAddr, &'static str> {
    text.parse().map_err(|_| "an address and a port are expected, such as 127.0.0.1:7420")
}
