//! Programs that reach further than the workspace: other machines, containers, databases, the system.

use super::Trait::{
    Asks, AsksUnlessFed, Destroys, Ends, Makes, Network, Prepares, Shows, Stays, System, Tells,
};
use super::table::{ASKS_FOR_ITSELF, PLAIN};
use super::{Does, Files, HERE, Program, reads};

pub(super) const PROGRAMS: &[Program] = &[
    // The network.
    Program {
        names: &["curl"],
        short: "oHXd",
        long: &["output"],
        files: Files::Own,
        does: &[
            Does::any(Network).without(&[HERE, "--version", "--help", "-V"]),
            Does::any(Tells("curl", "let it fail where the server refuses: `curl -f`")).without(&[
                "-f",
                "--fail",
                "--fail-with-body",
            ]),
            Does::any(Makes),
        ],
        ..PLAIN
    },
    Program {
        names: &["wget"],
        short: "O",
        long: &["output-document"],
        files: Files::Own,
        does: &[Does::any(Network).without(&[HERE, "--version", "--help", "-V"]), Does::any(Makes)],
        ..PLAIN
    },
    Program {
        names: &["http", "https", "xh"],
        does: &[Does::any(Network).without(&[HERE, "--version", "--help", "-V"])],
        ..PLAIN
    },
    Program {
        names: &["ssh"],
        does: &[Does::any(Network).without(ASKS_FOR_ITSELF), Does::any(Asks).without(&["*batchmode*"])],
        ..PLAIN
    },
    Program {
        names: &["ftp", "telnet"],
        does: &[Does::any(Network).without(ASKS_FOR_ITSELF), Does::any(Asks)],
        ..PLAIN
    },
    Program {
        names: &[
            "scp",
            "sftp",
            "az",
            "ping",
            "dig",
            "nslookup",
            "host",
            "whois",
            "traceroute",
            "mail",
            "sendmail",
        ],
        does: &[Does::any(Network).without(ASKS_FOR_ITSELF)],
        ..PLAIN
    },
    Program { names: &["nc", "ncat", "socat"], does: &[Does::any(Network).without(&[HERE])], ..PLAIN },
    Program { names: &["openssl"], does: &[Does::on(&["s_client"], Network).without(&[HERE])], ..PLAIN },
    Program { names: &["rsync"], does: &[Does::any(Network).with(&["*:*"]), Does::any(Makes)], ..PLAIN },
    Program {
        names: &["aws"],
        does: &[
            Does::any(Network).without(ASKS_FOR_ITSELF),
            Does::any(Destroys).with(&["rm", "rb", "*delete-*", "*terminate-*"]),
            Does::any(Asks).with(&["login"]),
        ],
        ..PLAIN
    },
    Program {
        names: &["gcloud"],
        does: &[Does::any(Network).without(ASKS_FOR_ITSELF), Does::any(Asks).with(&["login"])],
        ..PLAIN
    },
    // Containers and clusters.
    Program {
        names: &["kubectl"],
        short: "n",
        long: &["namespace", "context", "cluster", "kubeconfig", "user"],
        does: &[
            // These only work on files, or ask the client.
            Does::other_than(Network, &["kustomize", "config", "completion", "options", "plugin"])
                .without(&["--client", "--dry-run=client", "--version", "--help"]),
            Does::any(Destroys).with(&["delete", "drain"]),
        ],
        ..PLAIN
    },
    Program {
        names: &["helm"],
        short: "n",
        long: &["namespace", "kube-context"],
        does: &[
            Does::on(&["repo", "pull", "push", "install", "upgrade"], Network),
            Does::any(Destroys).with(&["uninstall", "delete"]),
        ],
        ..PLAIN
    },
    Program {
        names: &["terraform", "tofu"],
        does: &[
            Does::on(&["init", "apply", "destroy", "plan"], Network),
            Does::any(Destroys).with(&["destroy", "apply"]),
        ],
        ..PLAIN
    },
    Program {
        names: &["docker", "podman"],
        reads: reads::DOCKER,
        short: "Hl",
        long: &["context", "host", "config", "log-level"],
        does: DOCKER,
        ..PLAIN
    },
    Program {
        names: &["docker-compose"],
        reads: reads::COMPOSE,
        short: "fp",
        long: &["file", "project-name"],
        does: &[
            Does::any(Destroys).with(&["down"]).and(&["-v", "--volumes"]),
            Does::any(Stays).with(&["up"]).and(&["-d", "--detach"]),
            Does::any(Stays).with(&["start"]),
            Does::any(Ends).with(&["down", "stop"]),
            Does::any(Shows).with(&["down", "stop", "logs", "ps"]),
        ],
        ..PLAIN
    },
    // Databases and services.
    Program { names: &["psql", "mysql", "sqlite3"], does: &[SQL, Does::any(AsksUnlessFed).alone()], ..PLAIN },
    Program { names: &["mongosh", "mongo", "mariadb"], does: &[SQL], ..PLAIN },
    Program {
        names: &["redis-cli"],
        does: &[Does::any(Destroys).with(&["*flushall*", "*flushdb*"]), Does::any(Ends).with(&["shutdown"])],
        ..PLAIN
    },
    Program { names: &["redis-server"], does: &[Does::any(Stays).with(&["--daemonize"])], ..PLAIN },
    Program { names: &["dropdb"], does: &[Does::any(Destroys)], ..PLAIN },
    Program {
        names: &["pg_ctl"],
        does: &[Does::any(Stays).with(&["start", "restart"]), Does::any(Ends).with(&["stop"])],
        ..PLAIN
    },
    Program {
        names: &["systemctl", "service"],
        does: &[
            Does::any(Stays).with(&["start", "restart"]),
            Does::any(Ends).with(&["stop"]),
            Does::any(System),
        ],
        ..PLAIN
    },
    // The system.
    Program {
        names: &["pkill"],
        does: &[Does::any(Prepares), Does::any(Destroys), Does::any(Ends)],
        ..PLAIN
    },
    Program { names: &["killall"], does: &[Does::any(Destroys), Does::any(Ends)], ..PLAIN },
    Program {
        names: &["shutdown", "reboot", "halt", "poweroff", "wipefs", "fdisk", "parted", "mkfs"],
        does: &[Does::any(Destroys)],
        ..PLAIN
    },
    Program { names: &["crontab"], does: &[Does::any(Destroys).with(&["-r"]), Does::any(System)], ..PLAIN },
    Program { names: &["su"], does: &[Does::any(Asks), Does::any(System)], ..PLAIN },
    Program {
        names: &[
            "mount", "umount", "useradd", "usermod", "userdel", "sysctl", "iptables", "nft", "modprobe",
            "insmod",
        ],
        does: &[Does::any(System)],
        ..PLAIN
    },
    Program {
        names: &["apt", "apt-get", "dnf", "yum"],
        short: "oct",
        does: &[
            Does::other_than(Network, &["list", "show", "info", "search"]),
            Does::on(&["install", "remove", "upgrade"], Asks).without(&["-y", "--yes"]),
            Does::any(System),
        ],
        ..PLAIN
    },
    Program {
        names: &["apk", "pacman", "snap"],
        does: &[Does::other_than(Network, &["list", "show", "info", "search"]), Does::any(System)],
        ..PLAIN
    },
    Program {
        names: &["brew"],
        does: &[Does::other_than(Network, &["list", "show", "info", "search"])],
        ..PLAIN
    },
    Program { names: &["daemonize"], does: &[Does::any(Stays)], ..PLAIN },
    Program { names: &["tmux"], does: &[Does::on(&["new", "new-session"], Stays).with(&["-d"])], ..PLAIN },
    Program { names: &["screen"], does: &[Does::any(Stays).with(&["-d"])], ..PLAIN },
    Program {
        names: &[
            "vim", "vi", "nvim", "nano", "emacs", "top", "htop", "man", "fzf", "dialog", "whiptail",
            "passwd", "visudo",
        ],
        does: &[Does::any(Asks)],
        ..PLAIN
    },
];

const SQL: Does = Does::any(Destroys).with(&[
    "*drop database*",
    "*drop table*",
    "*drop schema*",
    "*truncate *",
    "*delete from*",
    "*dropdatabase*",
]);

const DOCKER: &[Does] = &[
    Does::on(&["pull", "push", "login", "search"], Network),
    Does::on(&["login"], Asks),
    Does::on(&["run", "exec"], Asks).with(&["-i", "--interactive"]).and(&["-t", "--tty"]),
    Does::any(Destroys).with(&["prune"]),
    Does::on(&["volume"], Destroys).with(&["rm"]).and(&["-f", "--force"]),
    Does::on(&["compose"], Destroys).with(&["down"]).and(&["-v", "--volumes"]),
    Does::on(&["run"], Stays).with(&["-d", "--detach"]),
    Does::on(&["compose"], Stays).with(&["up"]).and(&["-d", "--detach"]),
    Does::on(&["compose"], Stays).with(&["start"]),
    Does::any(Ends).with(&["stop", "rm", "kill", "down"]),
    Does::on(&["rm", "stop", "kill", "logs", "ps", "pull", "network", "volume", "images"], Shows),
    Does::any(Shows).with(&["down", "stop", "logs", "ps"]),
    Does::any(Makes),
];
