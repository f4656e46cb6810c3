//! The forms of a scrape.

use super::page::Page;
use super::{protobuf, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own text, for programs that do not ask for another form.
    Text,
    OpenMetrics,
    /// Prometheus' binary form, the only one with native histograms and the start times of counters.
    Protobuf,
}

impl Format {
    const NAMES: [(&'static str, Self); 3] = [
        ("application/vnd.google.protobuf", Self::Protobuf),
        ("application/openmetrics-text", Self::OpenMetrics),
        ("text/plain", Self::Text),
    ];

    /// The form that the header `Accept` prefers; text for programs that prefer none.
    pub fn accepted(header: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for range in header.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f64>().ok()).unwrap_or(1.0);
            if let Some((_, format)) = Self::NAMES.iter().find(|(known, _)| *known == name)
                && quality > best.0
            {
                best = (quality, *format);
            }
        }
        best.1
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    pub fn encode(self, page: Page) -> Vec<u8> {
        match self {
            Self::Text => text::encode(page, false).into_bytes(),
            Self::OpenMetrics => text::encode(page, true).into_bytes(),
            Self::Protobuf => protobuf::encode(&page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_form_is_served() {
        let prometheus = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
                          application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (header, format) in [
            (prometheus, Format::Protobuf),
            ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2", Format::OpenMetrics),
            ("text/plain,application/openmetrics-text;q=0.5", Format::Text),
            ("*/*", Format::Text),
            ("", Format::Text),
        ] {
            assert_eq!(Format::accepted(header), format, "{header}");
        }
    }
}
