//! The names for `redis-benchmark -t`, as names of `workload.preset`.

use redisbench_benchmark::api::preset::{Fill, PRESETS, Preset};

/// Returns the presets for `names` and remarks on what differs. Unknown names stay, for the benchmark's validation to report.
pub fn presets(names: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut presets, mut remarks) = (Vec::new(), Vec::new());
    for name in names {
        let name = name.trim().to_lowercase();
        match name.as_str() {
            "ping" | "ping_inline" => {
                remarks.push("test ping_inline: commands are sent as arrays only; ping_mbulk runs instead".to_owned());
                presets.push("ping_mbulk".to_owned());
            }
            "lrange" => presets.extend(all().filter(|name| name.starts_with("lrange_"))),
            _ => presets.push(name),
        }
    }
    let mut once = Vec::new();
    for name in presets {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    (once, remarks)
}

/// Returns whether a test in `names` needs an element per request, and so the number of its requests.
pub fn consume(names: &[String]) -> bool {
    let consumes = |preset: &&Preset| matches!(preset.fill, Fill::ElementPerRequest { .. });
    PRESETS.iter().filter(consumes).any(|preset| names.iter().any(|name| name == preset.name))
}

/// The names of all presets.
pub fn all() -> impl Iterator<Item = String> {
    PRESETS.iter().map(|preset| preset.name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_redis_benchmark_are_understood() {
        let presets = |text: &str| presets(&text.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(presets("SET,get,set").0, ["set", "get"]);
        assert_eq!(presets("lrange").0, ["lrange_100", "lrange_300", "lrange_500", "lrange_600"]);
        let (names, remarks) = presets("ping,ping_mbulk,frob");
        assert_eq!(names, ["ping_mbulk", "frob"]);
        assert!(remarks.len() == 1 && remarks[0].contains("ping_inline"), "{remarks:?}");
    }
}
