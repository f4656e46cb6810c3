//! A target with TLS that requires a client certificate and a user: Secrets reach only the shards.

use anyhow::{Result, ensure};
use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use redisbench_e2e::accounts::sent;
use redisbench_e2e::benchmark::SOON;
use redisbench_e2e::json::list;
use redisbench_e2e::{Benchmark, redis, run};
use serde_json::json;

const CONF: &str = "tls-port 6380
tls-cert-file /etc/redis/tls.crt
tls-key-file /etc/redis/tls.key
tls-ca-cert-file /etc/redis/ca.crt
tls-auth-clients yes
user default on nopass ~* &* +@all -get -set
user bench on >secret ~* &* +@all
";

#[test]
fn mutual_tls_and_a_user() {
    run(|namespace| async move {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        // A distinct name, because a certificate with its issuer's name counts as self-signed.
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let issue = |name: &str| -> Result<(String, String)> {
            let key = KeyPair::generate()?;
            let certificate = CertificateParams::new([name.to_owned()])?.signed_by(&key, &authority)?;
            Ok((certificate.pem(), key.serialize_pem()))
        };
        let ((certificate, key), (client, client_key)) = (issue("redis-tls")?, issue("bench")?);
        let ca = authority.pem();
        for (name, data) in [
            ("redis-conf", json!({"redis.conf": CONF, "ca.crt": ca, "tls.crt": certificate, "tls.key": key})),
            ("redis-ca", json!({"ca.crt": ca})),
            ("redis-client", json!({"tls.crt": client, "tls.key": client_key})),
            ("redis-auth", json!({"username": "bench", "password": "secret"})),
        ] {
            namespace.secret(name, data).await?;
        }
        redis::secure(&namespace, "redis", "redis-conf").await?;
        let target = json!([{
            "name": "redis",
            "type": "Standalone",
            "endpoints": ["redis-tls:6380"],
            "auth": {"secretRef": {"name": "redis-auth", "usernameKey": "username"}},
            "tls": {
                "caSecretRef": {"name": "redis-ca"},
                "clientCertificateSecretRef": {"name": "redis-client"},
                "minimumVersion": "TLS13",
            },
        }]);
        let spec = json!({"targets": target, "cleanup": {"keys": "DeletePrefix"}});
        let benchmark = Benchmark::create(&namespace, "secure", &spec).await?;
        let object = benchmark.succeeded(SOON).await?;
        let noted = list(&object, "/status/verdict/reasons").iter().any(|reason| reason["reason"] == "NotVerified");
        ensure!(!noted, "the certificate was verified, but the verdict has NotVerified: {object}");
        // The deletion of the keys is counted separately.
        let calls = redis::calls(&namespace, "deployment/redis").await?;
        let served: u64 = ["get", "set"].iter().filter_map(|command| calls.get(*command)).sum();
        ensure!(served == sent(&object)?, "the server counted {calls:?}: {object}");
        let left = redis::cli(&namespace, "deployment/redis", &["dbsize"]).await?;
        ensure!(left.trim() == "0", "{left} keys are left");

        // Without its authority, no requests are sent.
        let mut stranger = target;
        stranger[0]["tls"]["caSecretRef"] = json!({"name": "redis-client", "key": "tls.crt"});
        let benchmark = Benchmark::create(&namespace, "stranger", &json!({"targets": stranger})).await?;
        let failed = benchmark.wait("Failed", SOON, |object| object["status"]["phase"] == "Failed").await?;
        let told = list(&failed, "/status/conditions").iter().any(|condition| {
            condition["reason"] == "TlsFailed"
                && condition["message"].as_str().is_some_and(|text| text.contains("spec.targets[0].tls.caSecretRef"))
        });
        ensure!(told, "no condition reports the certificate: {failed}");
        Ok(())
    });
}
