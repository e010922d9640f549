//! A model's service on loopback: it speaks either form, answers as it is told, and keeps what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// A form of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Messages,
    Chat,
    Embeddings,
}

/// One answer of the service.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The answer in the form's structured way.
    Structured(Value),
    /// A text.
    Text(String),
    /// A status with a header and a body.
    Status(u16, &'static str, &'static str),
    /// Bytes as the whole body.
    Body(String),
    /// No answer, as long as the test lives.
    Silence,
    /// No answer: the connection is closed.
    Gone,
}

/// A call as it came.
#[derive(Clone, Debug)]
pub struct Call {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl Call {
    /// The words that the model was asked.
    pub fn prompt(&self) -> String {
        let messages = self.body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    }
}

#[derive(Default)]
struct Heard {
    calls: Mutex<Vec<Call>>,
    came: Condvar,
}

pub struct Service {
    pub form: Form,
    address: String,
    heard: Arc<Heard>,
}

impl Service {
    /// Starts a service with these answers; when they are used up it answers with an error that is not tried again.
    pub fn start(form: Form, replies: Vec<Reply>) -> Service {
        let mut left = replies.into_iter();
        Service::answering(form, move |_| left.next())
    }

    /// Starts a service that answers by what it is asked; without an answer it is an error that is not tried again.
    pub fn answering(form: Form, mut reply: impl FnMut(&Call) -> Option<Reply> + Send + 'static) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Heard::default());
        let kept = heard.clone();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming().flatten() {
                silent.extend(serve(form, stream, &kept, &mut reply));
            }
        });
        Service { form, address, heard }
    }

    pub fn url(&self) -> String {
        self.address.clone()
    }

    pub fn calls(&self) -> Vec<Call> {
        self.heard.calls.lock().unwrap().clone()
    }

    /// Waits until so many calls have come.
    pub fn await_calls(&self, count: usize) {
        let calls = self.heard.calls.lock().unwrap();
        let within = Duration::from_secs(120);
        let (calls, waited) =
            self.heard.came.wait_timeout_while(calls, within, |calls| calls.len() < count).unwrap();
        assert!(!waited.timed_out(), "{} calls of {count}", calls.len());
    }
}

/// Serves one connection; returns it where it is to stay silent.
fn serve(
    form: Form,
    stream: TcpStream,
    heard: &Heard,
    reply: &mut dyn FnMut(&Call) -> Option<Reply>,
) -> Option<TcpStream> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let call = Call { path, headers, body };
    let answered = reply(&call).map(|reply| written(form, &reply, &call.body));
    heard.calls.lock().unwrap().push(call);
    heard.came.notify_all();
    let (status, header, text) = match answered {
        Some(Some((0, ..))) => return None,
        Some(Some(answered)) => answered,
        Some(None) => return Some(stream),
        None => (404, "x-none: 1".to_owned(), "{\"error\": {\"message\": \"no answer is left\"}}".to_owned()),
    };
    let mut stream = stream;
    let length = text.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{header}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(text.as_bytes()).ok()?;
    None
}

fn written(form: Form, reply: &Reply, asked: &Value) -> Option<(u16, String, String)> {
    let plain = "x-plain: 1".to_owned();
    let body = match reply {
        Reply::Silence => return None,
        Reply::Gone => return Some((0, String::new(), String::new())),
        Reply::Status(status, header, body) => {
            return Some((*status, (*header).to_owned(), (*body).to_owned()));
        }
        Reply::Body(body) => return Some((200, plain, body.clone())),
        Reply::Structured(value) => match form {
            Form::Messages => {
                let name = asked["tools"][0]["name"].as_str().unwrap_or("none");
                json!([{ "type": "text", "text": "" }, { "type": "tool_use", "id": "t", "name": name, "input": value }])
            }
            Form::Chat | Form::Embeddings => json!(value.to_string()),
        },
        Reply::Text(text) => match form {
            Form::Messages => json!([{ "type": "text", "text": text }]),
            Form::Chat | Form::Embeddings => json!(text),
        },
    };
    let whole = match form {
        Form::Messages => json!({
            "type": "message", "role": "assistant", "content": body,
            "usage": { "input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 200 },
        }),
        Form::Chat | Form::Embeddings => json!({
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": body } }],
            "usage": { "prompt_tokens": 1000, "prompt_tokens_details": { "cached_tokens": 100 }, "completion_tokens": 200 },
        }),
    };
    Some((200, plain, whole.to_string()))
}
