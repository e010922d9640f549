//! Sends spans to a collector by OTLP: the only file that knows the SDK.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{Link, SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use planctl_config::{TraceConfig, TraceProtocol};
use planctl_engine::Timestamp;

use super::span::{Kind, Span, Value};

/// How long one try may take, whatever the environment says: nothing else waits for it, but a stop does.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// The most of a collector's answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The variables that name a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
/// The path below an address that stands for all signals.
const TRACES_PATH: &str = "v1/traces";

/// Why spans were not taken.
#[derive(Debug)]
pub(crate) struct ExportError {
    /// For the log.
    pub(crate) what: String,
    /// Says that the collector will never take these spans, so that they are left out.
    pub(crate) is_final: bool,
}

/// Sends spans to one collector.
#[derive(Debug)]
pub(crate) struct Exporter {
    settings: ExportSettings,
    /// Made at the first try: a process that sends nothing reads no certificates.
    made: OnceLock<Result<Made, String>>,
}

#[derive(Debug)]
struct Made {
    exporter: opentelemetry_otlp::SpanExporter,
    status: Arc<AtomicU16>,
    scope: InstrumentationScope,
}

/// The settings that the library does not read by itself, or in another way.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ExportSettings {
    protocol: TraceProtocol,
    /// The address, where the environment names none.
    endpoint: Option<String>,
    /// The name of the service, where the environment gives none.
    service: String,
}

impl Exporter {
    /// Reads what is wanted; the environment goes before the configuration.
    pub(super) fn from_config(
        config: &TraceConfig,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Exporter>, String> {
        let settings = ExportSettings::from_config(config, env)?;
        Ok(settings.map(|settings| Exporter { settings, made: OnceLock::new() }))
    }

    /// Sends spans once.
    ///
    /// # Errors
    ///
    /// Those of the collector, and of the way to it.
    pub(crate) async fn send(&self, spans: &[Span]) -> Result<(), ExportError> {
        let made = self.made.get_or_init(|| self.settings.make());
        let made = made.as_ref().map_err(|what| ExportError { what: what.clone(), is_final: false })?;
        made.status.store(0, Ordering::Relaxed);
        let batch = spans.iter().map(|span| data(span, &made.scope)).collect();
        let sent = tokio::time::timeout(TIMEOUT_MAX, made.exporter.export(batch)).await;
        let what = match sent {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        // A collector that is there and does not take the spans as they are will not take them later; 401 and 403 can be mended.
        let status = made.status.load(Ordering::Relaxed);
        let is_final = (400..500).contains(&status) && ![401, 403, 404, 408, 429].contains(&status);
        Err(ExportError { what, is_final })
    }
}

impl ExportSettings {
    fn from_config(
        config: &TraceConfig,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<ExportSettings>, String> {
        let env =
            |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        if env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let is_named = match env("OTEL_TRACES_EXPORTER").as_deref() {
            None => false,
            Some("otlp") => true,
            Some("none") => return Ok(None),
            Some(other) => {
                return Err(format!("OTEL_TRACES_EXPORTER is {other:?}: planctl knows otlp and none"));
            }
        };
        let from_env = ENDPOINTS.into_iter().find_map(env);
        if from_env.is_none() && config.endpoint.is_none() && !is_named {
            return Ok(None);
        }
        let protocol = match PROTOCOLS.into_iter().find_map(|name| Some((name, env(name)?))) {
            None => config.protocol,
            Some((name, word)) => {
                TraceProtocol::ALL.into_iter().find(|protocol| protocol.as_str() == word).ok_or_else(
                    || format!("{name} is {word:?}: planctl speaks http/protobuf and http/json"),
                )?
            }
        };
        let endpoint = config.endpoint.as_ref().filter(|_| from_env.is_none());
        Ok(Some(ExportSettings {
            protocol,
            endpoint: endpoint.map(|address| format!("{}/{TRACES_PATH}", address.trim_end_matches('/'))),
            service: config.service.clone().unwrap_or_else(|| "planctl".to_owned()),
        }))
    }

    fn make(&self) -> Result<Made, String> {
        // The process has one implementation of cryptography; a second caller chooses the same.
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        let status = Arc::new(AtomicU16::new(0));
        let builder = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(Client { client, status: status.clone() })
            // The loop sends again, later and later.
            .with_retry_policy(RetryPolicy::disabled())
            .with_protocol(match self.protocol {
                TraceProtocol::Protobuf => Protocol::HttpBinary,
                TraceProtocol::Json => Protocol::HttpJson,
            });
        let builder = match &self.endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint),
            None => builder,
        };
        let mut exporter = builder.build().map_err(|error| error.to_string())?;
        exporter.set_resource(&self.resource());
        let scope = InstrumentationScope::builder("planctl").with_version(env!("CARGO_PKG_VERSION")).build();
        Ok(Made { exporter, status, scope })
    }

    /// Returns what the spans are of; `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` go before what is set here.
    fn resource(&self) -> Resource {
        let named = Resource::builder().build();
        let is_named = named
            .get(&"service.name".into())
            .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
        let builder = Resource::builder();
        let builder = if is_named { builder } else { builder.with_service_name(self.service.clone()) };
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let has_version = named.get(&"service.version".into()).is_some();
        if has_version { builder.build() } else { builder.with_attribute(version).build() }
    }
}

/// A client whose newest status is remembered, which the library says only in words.
#[derive(Debug)]
struct Client {
    client: reqwest::Client,
    status: Arc<AtomicU16>,
}

/// The answer of a collector, once it is there.
type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Client {
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sent<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            let mut answer = self.client.execute(request.try_into()?).await?;
            let status = answer.status();
            self.status.store(status.as_u16(), Ordering::Relaxed);
            let mut body = Vec::new();
            while let Some(part) = answer.chunk().await? {
                if body.len() + part.len() > ANSWER_BYTES_MAX {
                    return Err("the collector's answer is too long".into());
                }
                body.extend_from_slice(&part);
            }
            let mut response = Response::new(Bytes::from(body));
            *response.status_mut() = status;
            *response.headers_mut() = std::mem::take(answer.headers_mut());
            Ok(response)
        })
    }
}

fn data(span: &Span, scope: &InstrumentationScope) -> SpanData {
    let context = |trace, id| SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::default());
    let attributes = span.attributes.iter().map(|(name, value)| match value {
        Value::Text(text) => KeyValue::new(*name, text.clone()),
        Value::Number(number) => KeyValue::new(*name, *number),
        Value::Amount(amount) => KeyValue::new(*name, *amount),
        Value::Truth(truth) => KeyValue::new(*name, *truth),
    });
    let links = span.links.iter().map(|(trace, id)| Link::with_context(context(*trace, *id)));
    let mut all_links = SpanLinks::default();
    all_links.links = links.collect();
    SpanData {
        span_context: context(span.trace, span.id),
        parent_span_id: span.parent.unwrap_or(SpanId::INVALID),
        parent_span_is_remote: span.kind == Kind::Server,
        span_kind: match span.kind {
            Kind::Internal => SpanKind::Internal,
            Kind::Server => SpanKind::Server,
        },
        name: span.name.clone().into(),
        start_time: system_time(span.began),
        end_time: system_time(span.ended),
        attributes: attributes.collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: all_links,
        status: match &span.failed {
            None => Status::Unset,
            Some(why) => Status::error(why.clone()),
        },
        instrumentation_scope: scope.clone(),
    }
}

fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(at.as_micros()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(config: &TraceConfig, env: &[(&str, &str)]) -> Result<Option<ExportSettings>, String> {
        ExportSettings::from_config(config, |name| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_sent_unless_somebody_names_a_collector() {
        let config = TraceConfig::default();
        assert_eq!(wanted(&config, &[]), Ok(None));
        assert_eq!(wanted(&config, &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(None));
        assert!(wanted(&config, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")]).unwrap().is_some());
        assert!(wanted(&config, &[("OTEL_TRACES_EXPORTER", "otlp")]).unwrap().is_some());
        let off = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_TRACES_EXPORTER", "none")];
        assert_eq!(wanted(&config, &off), Ok(None));
        let off = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("OTEL_SDK_DISABLED", "true")];
        assert_eq!(wanted(&config, &off), Ok(None));
    }

    #[test]
    fn the_environment_goes_before_the_configuration() {
        let config = TraceConfig {
            endpoint: Some("http://file:4318/".to_owned()),
            protocol: TraceProtocol::Json,
            service: Some("plans".to_owned()),
        };
        let settings = wanted(&config, &[]).unwrap().unwrap();
        assert_eq!(settings.endpoint.as_deref(), Some("http://file:4318/v1/traces"));
        assert_eq!((settings.protocol, settings.service.as_str()), (TraceProtocol::Json, "plans"));
        let env = [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://env:4318/traces"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ];
        let settings = wanted(&config, &env).unwrap().unwrap();
        assert_eq!((settings.protocol, settings.endpoint), (TraceProtocol::Protobuf, None));
        for (name, value) in [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_TRACES_EXPORTER", "zipkin")] {
            let error = wanted(&config, &[(name, value)]).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
    }
}
