//! Certificates of a test's own, and a proxy that speaks TLS.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

/// A certificate authority, and the certificate of one server that it signed; all of them in files.
pub struct Certificates {
    folder: tempfile::TempDir,
    server: rcgen::Certificate,
    key: KeyPair,
}

impl Certificates {
    pub fn of(name: &str) -> Certificates {
        Certificates::of_all(&[name])
    }

    /// Makes a certificate for several names.
    pub fn of_all(names: &[&str]) -> Certificates {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut authority = CertificateParams::new([]).unwrap();
        // Two of them are told apart by their names first.
        authority.distinguished_name.push(DnType::CommonName, folder.path().to_string_lossy());
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let server = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        for (file, text) in
            [("ca.pem", authority.pem()), ("server.pem", server.pem()), ("key.pem", key.serialize_pem())]
        {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        Certificates { folder, server, key }
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }
}

/// A proxy that speaks TLS and passes on what it hears; it goes with the test's process.
pub struct Proxy {
    pub port: u16,
    /// How often somebody began to speak with it.
    greeted: Arc<AtomicUsize>,
}

impl Proxy {
    /// Opens one on loopback before this address.
    pub fn before(to: &str, certificates: &Certificates) -> Proxy {
        Proxy::start("127.0.0.1:0", to, certificates, || {})
    }

    /// Takes calls at one address and passes them on to the other, in a thread that `enter`s a network first.
    pub fn start(
        at: &str,
        to: &str,
        certificates: &Certificates,
        enter: impl FnOnce() + Send + 'static,
    ) -> Proxy {
        let (at, to): (SocketAddr, SocketAddr) = (at.parse().unwrap(), to.parse().unwrap());
        let key = PrivatePkcs8KeyDer::from(certificates.key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificates.server.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let greeted = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&greeted);
        let (opened, is_open) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            enter();
            let listener = std::net::TcpListener::bind(at).unwrap();
            listener.set_nonblocking(true).unwrap();
            opened.send(listener.local_addr().unwrap().port()).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let door = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = door.accept().await {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        // A client that does not trust the certificate leaves here.
                        let Ok(mut client) = acceptor.accept(stream).await else { return };
                        let Ok(mut daemon) = TcpStream::connect(to).await else { return };
                        // Either side may leave without a word.
                        tokio::io::copy_bidirectional(&mut client, &mut daemon).await.ok();
                    });
                }
            });
        });
        Proxy { port: is_open.recv().unwrap(), greeted }
    }

    pub fn greeted(&self) -> usize {
        self.greeted.load(Ordering::Relaxed)
    }
}
