//! The addresses of endpoints, and servers that do not answer there.

use std::net::SocketAddr;

use redisbench_wire::FailureReason;
use redisbench_wire::plan::Target;

use super::access::TargetAccess;
use super::endpoint::Endpoint;
use super::finding::Finding;
use super::trouble::Trouble;
use super::{advice, client, tls};

/// An endpoint and its addresses.
pub(super) async fn addresses(target: &Target, text: &str) -> Result<(Endpoint, Vec<SocketAddr>), Finding> {
    let Ok(endpoint) = text.parse::<Endpoint>() else {
        let message = format!("spec.targets[0].endpoints: {text} is not of the form host:port");
        return Err(Finding::Failed(advice::failure(FailureReason::BadPlan, &message)));
    };
    match endpoint.resolve().await {
        Ok(addresses) => Ok((endpoint, addresses)),
        Err(error) => Err(Finding::Obstacle(advice::not_resolved(&target.name, text, &client::name(&error)))),
    }
}

/// The meaning of a server's trouble at one address: an obstacle, as others may answer, or a failure.
pub(super) async fn not_answered(
    target: &Target,
    text: &str,
    address: SocketAddr,
    access: &TargetAccess,
    trouble: &Trouble,
) -> Finding {
    match trouble {
        Trouble::Insecure(problem) => Finding::Failed(advice::insecure(&target.name, &format!("{text}: {problem}"))),
        Trouble::Foreign(_) if access.security.is_none() && tls::speaks_tls(address).await => {
            Finding::Failed(advice::wants_tls(&target.name, text))
        }
        _ => Finding::Obstacle(advice::unreachable(&target.name, text, trouble.text())),
    }
}
