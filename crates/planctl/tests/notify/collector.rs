//! A collector of traces: an HTTP server on loopback that reads OTLP in both forms, keeps the spans, and answers as it is told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use serde_json::Value;

use super::listener::{Request, listen, read};
use crate::support::wait_until;

/// A span that arrived.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub began: u64,
    pub ended: u64,
    pub attributes: BTreeMap<String, Value>,
    pub has_failed: bool,
    /// The trace and the span of each link.
    pub links: Vec<(String, String)>,
}

impl Span {
    pub fn text(&self, name: &str) -> &str {
        self.attributes.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// Returns a number, which OTLP writes as a text.
    pub fn number(&self, name: &str) -> Option<i64> {
        let value = self.attributes.get(name)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }
}

#[derive(Default)]
struct Inner {
    spans: Vec<Span>,
    /// The attributes of the newest resource.
    resource: BTreeMap<String, Value>,
    /// The whole bodies, to look for what must not be there.
    bodies: Vec<Vec<u8>>,
    headers: BTreeMap<String, String>,
    /// Its next answers; 200 where nothing is left.
    answers: VecDeque<String>,
}

/// The server; it ends with the test.
#[derive(Clone)]
pub struct Collector {
    pub port: u16,
    inner: Arc<Mutex<Inner>>,
}

impl Collector {
    pub fn new() -> Collector {
        Collector::at("127.0.0.1:0")
    }

    pub fn at(address: &str) -> Collector {
        let inner = Arc::new(Mutex::new(Inner::default()));
        let shared = inner.clone();
        let port = listen(address, move |stream| served(stream, &shared));
        Collector { port, inner }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn answer(&self, answers: &[&str]) {
        self.inner.lock().unwrap().answers.extend(answers.iter().map(|answer| (*answer).to_owned()));
    }

    pub fn spans(&self) -> Vec<Span> {
        self.inner.lock().unwrap().spans.clone()
    }

    pub fn named(&self, name: &str) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }

    pub fn resource(&self) -> BTreeMap<String, Value> {
        self.inner.lock().unwrap().resource.clone()
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.inner.lock().unwrap().headers.get(name).cloned()
    }

    /// Says whether these bytes stood in any request.
    pub fn saw(&self, text: &str) -> bool {
        let inner = self.inner.lock().unwrap();
        let holds = |body: &Vec<u8>| body.windows(text.len()).any(|window| window == text.as_bytes());
        inner.bodies.iter().any(holds)
    }

    /// Waits for so many spans of runs; returns all spans.
    pub fn await_runs(&self, count: usize) -> Vec<Span> {
        let runs = || self.spans().iter().filter(|span| span.name.starts_with("run ")).count();
        wait_until(&format!("{count} spans of runs"), || runs() >= count);
        self.spans()
    }
}

/// Checks that each span arrived once and that each one's parent is there, but for those of other programs.
pub fn must_be_whole(spans: &[Span]) {
    let ids: BTreeSet<_> = spans.iter().map(|span| (&span.trace, &span.id)).collect();
    assert_eq!(ids.len(), spans.len(), "a span arrived twice: {spans:#?}");
    for span in spans {
        let has_parent = span.parent.is_empty() || ids.contains(&(&span.trace, &span.parent));
        assert!(has_parent, "its parent is not there: {span:#?}");
        assert!(span.began <= span.ended, "{span:#?}");
    }
}

/// Takes requests of one connection, until it is closed.
fn served(stream: TcpStream, inner: &Mutex<Inner>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(answer) = taken(&mut reader, inner) {
        let head = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n");
        if (&stream).write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

fn taken(reader: &mut BufReader<TcpStream>, inner: &Mutex<Inner>) -> Option<String> {
    let Request { first, headers, body } = read(reader)?;
    assert!(first.starts_with("POST /v1/traces HTTP/1.1"), "{first}");
    assert!(headers.contains_key("content-length"), "{headers:?}");
    let request: Value = match headers["content-type"].as_str() {
        "application/json" => serde_json::from_slice(&body).unwrap(),
        "application/x-protobuf" => {
            serde_json::to_value(ExportTraceServiceRequest::decode(body.as_slice()).unwrap()).unwrap()
        }
        other => panic!("{other}"),
    };
    let mut inner = inner.lock().unwrap();
    let answer = inner.answers.pop_front().unwrap_or_else(|| "200 OK".to_owned());
    inner.headers = headers;
    inner.bodies.push(body);
    if answer.starts_with("200") {
        for resource in list(&request["resourceSpans"]) {
            inner.resource = attributes(&resource["resource"]["attributes"]);
            for scope in list(&resource["scopeSpans"]) {
                inner.spans.extend(list(&scope["spans"]).iter().map(span));
            }
        }
    }
    Some(answer)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn span(value: &Value) -> Span {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nanos = |name: &str| value[name].as_str().unwrap().parse().unwrap();
    let links = list(&value["links"]).iter().map(|link| (text(&link["traceId"]), text(&link["spanId"])));
    Span {
        trace: text(&value["traceId"]),
        id: text(&value["spanId"]),
        parent: text(&value["parentSpanId"]),
        name: text(&value["name"]),
        began: nanos("startTimeUnixNano"),
        ended: nanos("endTimeUnixNano"),
        attributes: attributes(&value["attributes"]),
        has_failed: value["status"]["code"] == 2,
        links: links.collect(),
    }
}

/// Reads names and values, each value without the name of its kind.
fn attributes(value: &Value) -> BTreeMap<String, Value> {
    let pairs = list(value).iter().map(|pair| {
        let kinds = pair["value"].as_object().unwrap();
        (pair["key"].as_str().unwrap().to_owned(), kinds.values().next().unwrap().clone())
    });
    pairs.collect()
}
