//! Error messages for a target that refuses: its reply, and the field of the manifest to change.

use redisbench_wire::plan::{Target, Transport};
use redisbench_wire::{FailureReason, ShardFailure, limits};

use super::credentials::Credentials;
use super::trouble::Trouble;

/// A failure whose message is cut to the limit of the protocol.
pub fn failure(reason: FailureReason, message: &str) -> ShardFailure {
    ShardFailure { reason, message: limits::message(message) }
}

/// The mounted Secret is incomplete or unreadable.
pub fn unreadable_credentials(target: &str, problem: &str) -> ShardFailure {
    failure(
        FailureReason::AuthenticationFailed,
        &format!("target {target}: {problem}: check the Secret and keys of spec.targets[0].auth.secretRef"),
    )
}

/// The server refused AUTH, or an earlier command.
pub fn refused_credentials(target: &str, credentials: Option<&Credentials>, trouble: &Trouble) -> ShardFailure {
    let said = trouble.text();
    let message = match (trouble.code(), credentials) {
        ("NOAUTH", None) => {
            format!("target {target} needs a password: set spec.targets[0].auth.secretRef")
        }
        ("WRONGPASS", Some(credentials)) => format!(
            "target {target} refused the password of user {}: check spec.targets[0].auth.secretRef (reply: {said})",
            credentials.user()
        ),
        ("NOPERM", _) => format!(
            "target {target} does not allow user {} what a benchmark needs: grant it, or use another user in \
             spec.targets[0].auth.secretRef (reply: {said})",
            credentials.map_or("default", Credentials::user)
        ),
        (_, Some(_)) if said.contains("without any password configured") => {
            format!("target {target} has no password: remove spec.targets[0].auth, or use a user that has one")
        }
        _ => format!("target {target} refused the login: check spec.targets[0].auth (reply: {said})"),
    };
    failure(FailureReason::AuthenticationFailed, &message)
}

/// TLS failed. `problem` names the field and the fix.
pub fn insecure(target: &str, problem: &str) -> ShardFailure {
    failure(FailureReason::TlsFailed, &format!("target {target}: {problem}"))
}

/// The server speaks TLS, but the plan does not use it.
pub fn wants_tls(target: &str, endpoint: &str) -> ShardFailure {
    let message = format!(
        "target {target}: {endpoint} uses TLS: set spec.targets[0].tls, or use its plaintext port in \
         spec.targets[0].endpoints"
    );
    failure(FailureReason::TlsFailed, &message)
}

/// The server refused a connection of the engine. `message` contains the server and its reply.
pub fn refused_handshake(target: &str, message: &str) -> ShardFailure {
    let (reason, advice) = if ["WRONGPASS", "NOAUTH", "NOPERM"].iter().any(|code| message.contains(code)) {
        (FailureReason::AuthenticationFailed, "check spec.targets[0].auth.secretRef")
    } else if message.contains("max number of clients") {
        (FailureReason::Unreachable, "raise the server's maxclients or lower spec.load.connections")
    } else {
        (FailureReason::Unreachable, "check spec.targets[0]")
    };
    // Cut the reply, so that the advice after it survives the limit on the whole message.
    let said: String = message.chars().take(120).collect();
    failure(reason, &format!("target {target}: {said}: {advice}"))
}

/// No endpoint answered; `last` is the error of one of them.
pub fn unreachable(target: &str, endpoint: &str, last: &str) -> ShardFailure {
    failure(
        FailureReason::Unreachable,
        &format!("no endpoint of target {target} replied: {endpoint}: {last}; check spec.targets[0].endpoints"),
    )
}

/// No endpoint's name could be resolved.
pub fn not_resolved(target: &str, endpoint: &str, problem: &str) -> ShardFailure {
    failure(
        FailureReason::NameNotResolved,
        &format!(
            "target {target}: {endpoint} could not be resolved: {}: check spec.targets[0].endpoints (a Service in \
             another namespace is name.namespace.svc)",
            problem.trim_start_matches("failed to lookup address information: ")
        ),
    )
}

/// Rewrites a message for a target: it names the first one, as a trial has only one.
pub fn of_target(target: &Target, said: &ShardFailure) -> ShardFailure {
    failure(said.reason, &said.message.replace("spec.targets[0]", &target.field()))
}

/// Rewrites a message for a sentinel: replaces field names by those of sentinels, if the plan sets them.
pub fn of_sentinels(target: &Target, said: &ShardFailure) -> ShardFailure {
    let mut message = said.message.replace("spec.targets[0].auth", "spec.targets[0].sentinel.auth");
    if target.sentinels.as_ref().is_some_and(|own| own.transport != Transport::SameAsTarget) {
        message = message.replace("spec.targets[0].tls", "spec.targets[0].sentinel.transport.tls");
    }
    failure(said.reason, &message)
}

/// The server's topology differs from the plan.
pub fn wrong_topology(message: &str) -> ShardFailure {
    failure(FailureReason::WrongTopology, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(said: &str) -> String {
        refused_credentials("cart", None, &Trouble::Refused(said.into())).message
    }

    #[test]
    fn each_refusal_names_its_way_out() {
        assert_eq!(
            told("NOAUTH Authentication required."),
            "target cart needs a password: set spec.targets[0].auth.secretRef"
        );
        assert!(told("NOPERM this user has no permissions").contains("does not allow user default"));
        assert!(told("ERR unheard of").contains("(reply: ERR unheard of)"));
    }

    #[test]
    fn fields_are_those_of_the_target() {
        let second = Target { index: 1, ..redisbench_wire::plan::TrialPlan::basic("cart:6379").target };
        let refused = refused_credentials("cart", None, &Trouble::Refused("NOAUTH Authentication required.".into()));
        let message = of_target(&second, &refused).message;
        assert_eq!(message, "target cart needs a password: set spec.targets[1].auth.secretRef");
    }

    #[test]
    fn a_handshake_is_classed_by_the_servers_words() {
        let reason = |said: &str| refused_handshake("cart", said).reason;
        assert_eq!(reason("10.0.0.1:6379: WRONGPASS invalid"), FailureReason::AuthenticationFailed);
        assert_eq!(reason("10.0.0.1:6379: ERR max number of clients reached"), FailureReason::Unreachable);
        assert!(refused_handshake("cart", "ERR max number of clients reached").message.contains("maxclients"));
    }
}
