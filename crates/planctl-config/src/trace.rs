//! Where traces are sent, where the environment does not say.

/// The settings of `[traces]`. The variables of OpenTelemetry (`OTEL_…`) go before them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceConfig {
    /// The address of the collector, as in `OTEL_EXPORTER_OTLP_ENDPOINT`; without one, nothing is sent.
    pub endpoint: Option<String>,
    /// The form of the requests.
    pub protocol: TraceProtocol,
    /// The name of the service.
    pub service: Option<String>,
}

/// The form of requests to a collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TraceProtocol {
    /// Protobuf in requests of HTTP.
    #[default]
    Protobuf,
    /// JSON in requests of HTTP.
    Json,
}

impl TraceProtocol {
    /// All of them.
    pub const ALL: [TraceProtocol; 2] = [TraceProtocol::Protobuf, TraceProtocol::Json];

    /// Returns the word of the configuration and of `OTEL_EXPORTER_OTLP_PROTOCOL`.
    pub fn as_str(self) -> &'static str {
        match self {
            TraceProtocol::Protobuf => "http/protobuf",
            TraceProtocol::Json => "http/json",
        }
    }
}
