//! Explains errors of the API server.

use kube::core::Status;

/// A request to the API server, as far as error messages need it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The attempted action, to follow "failed to".
    pub what: &'static str,
    /// The verb of the required permission.
    pub verb: &'static str,
    /// The plural of the kind.
    pub resource: &'static str,
    /// Empty for all.
    pub namespace: &'a str,
}

/// For a cluster without our custom resource definition.
pub const NOT_INSTALLED: &str = "the cluster has no RedisBenchmark API; install the chart redisbench-operator first";

/// The error of a call, with the server's message and how to fix it.
pub fn error(error: kube::Error, question: Question<'_>) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::anyhow!(explain(&status, question)),
        kube::Error::SerdeError(error) => anyhow::anyhow!(
            "failed to {}: the answer does not match this version: {error}; use the redisbench of the operator's version, \
             which version prints",
            question.what
        ),
        error => anyhow::Error::new(error).context(format!("failed to {}", question.what)),
    }
}

/// The server's message and how to fix it, on one line.
pub fn explain(status: &Status, question: Question<'_>) -> String {
    let message = one_line(&status.message);
    let Question { what, verb, resource, namespace } = question;
    if status.code == 404 && message.starts_with("404 page") && resource == "redisbenchmarks" {
        return NOT_INSTALLED.to_owned();
    }
    let way_out = match status.code {
        401 => "; log in to the cluster again".to_owned(),
        403 => {
            let check = format!("auth can-i {verb} {resource}");
            let check = if namespace.is_empty() { format!("{check} -A") } else { format!("-n {namespace} {check}") };
            format!("; ask a cluster administrator for this permission, and check it with: kubectl {check}")
        }
        404 if message.starts_with("namespaces ") => {
            format!("; create it (kubectl create namespace {namespace}) or choose another with --namespace")
        }
        409 if message.starts_with("Apply failed") => {
            "; remove these fields from the manifest, or change them through that manager".to_owned()
        }
        _ => String::new(),
    };
    format!("failed to {what}: {message}{way_out}")
}

/// The server's message alone, or that of another error.
pub fn brief(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(present) = cause {
        if let Some(kube::Error::Api(status)) = present.downcast_ref() {
            return one_line(&status.message);
        }
        cause = present.source();
    }
    one_line(&error.to_string())
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_watch_says_what_the_server_said() {
        let status = Status { code: 403, message: "no\nwatching".into(), ..Status::default() };
        let error = kube::runtime::watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)));
        assert_eq!(brief(&error), "no watching");
    }
}
