//! Credentials and certificates of the targets, from the manifest or from a directory, with the keys that a cluster would mount.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Secret;
use redisbench_benchmark::api::target::{AuthoritySecretRef, SecretRef, TargetSecrets};
use redisbench_wire::plan::Target;

use crate::credentials::{Access, Certificates, Credentials};
use crate::manifest::Problem;

/// Kubernetes' size limit of a Secret.
const LARGEST_FILE: u64 = 1 << 20;

/// Fields of the manifest that refer to Secrets.
#[derive(Clone, Debug)]
pub struct Fields {
    auth: String,
    tls: String,
}

impl Fields {
    pub fn of_servers(target: &Target) -> Self {
        let field = target.field();
        Self { auth: format!("{field}.auth"), tls: format!("{field}.tls") }
    }

    pub fn of_sentinels(target: &Target) -> Self {
        let field = target.field();
        Self { auth: format!("{field}.sentinel.auth"), tls: format!("{field}.sentinel.transport.tls") }
    }
}

/// Sources of Secrets: directories (`--secret NAME=DIR`), otherwise the manifest's documents.
#[derive(Clone, Copy)]
pub struct Secrets<'a> {
    pub documents: &'a [Secret],
    /// Names and directories of the others.
    pub directories: &'a [(String, PathBuf)],
}

impl Secrets<'_> {
    /// Looks up what `wanted` refers to; without `certificates` only user name and password.
    ///
    /// # Errors
    /// If a Secret or one of its keys is missing, or is not text.
    pub fn access(&self, fields: &Fields, wanted: &TargetSecrets, certificates: bool) -> Result<Access, Problem> {
        let credentials = wanted.credentials.as_ref().map(|reference| self.credentials(fields, reference));
        let certificates = certificates.then(|| self.certificates(fields, wanted));
        Ok(Access {
            credentials: credentials.transpose()?,
            certificates: certificates.transpose()?.unwrap_or_default(),
        })
    }

    fn credentials(&self, fields: &Fields, reference: &SecretRef) -> Result<Credentials, Problem> {
        let read = |field: &str, key: &str| {
            let text = self.read(&format!("{}.secretRef", fields.auth), field, &reference.name, key)?;
            // Files written by an editor or `echo` end with a line break that is not part of the password.
            Ok::<_, Problem>(text.trim_end_matches(['\r', '\n']).to_owned())
        };
        let username = reference.username_key.as_deref().map(|key| read("usernameKey", key)).transpose()?;
        Ok(Credentials { username, password: read("passwordKey", &reference.password_key)? })
    }

    fn certificates(&self, fields: &Fields, wanted: &TargetSecrets) -> Result<Certificates, Problem> {
        let mut files = Vec::new();
        if let Some(AuthoritySecretRef { name, key }) = &wanted.authorities {
            files.push(("ca.crt", self.read(&format!("{}.caSecretRef", fields.tls), "key", name, key)?));
        }
        for key in wanted.certificate.iter().flat_map(|_| ["tls.crt", "tls.key"]) {
            let name = wanted.certificate.as_ref().map_or("", |secret| secret.name.as_str());
            let reference = format!("{}.clientCertificateSecretRef", fields.tls);
            files.push((key, self.read(&reference, "name", name, key)?));
        }
        Ok(Certificates { files })
    }

    /// The value of `key` in the Secret `name`, which `field` of `reference` refers to.
    fn read(&self, reference: &str, field: &str, name: &str, key: &str) -> Result<String, Problem> {
        let field = format!("{reference}.{field}");
        let directory = self.directories.iter().find(|(known, _)| known == name);
        let secret = self.documents.iter().find(|secret| secret.metadata.name.as_deref() == Some(name));
        let bytes = match (directory, secret) {
            (Some((_, directory)), _) => from_directory(directory, key),
            (None, Some(secret)) => from_document(secret, key),
            (None, None) => {
                let message = format!(
                    "Secret {name:?} was not found; add it to the manifest's file or read it from a directory: \
                     --secret {name}=DIR"
                );
                return Err(Problem::field(&format!("{reference}.name"), message));
            }
        };
        let bytes = bytes.map_err(|message| Problem::field(&field, message))?;
        String::from_utf8(bytes)
            .map_err(|_| Problem::field(&field, format!("key {key:?} of Secret {name:?} is not UTF-8 text")))
    }
}

fn from_directory(directory: &Path, key: &str) -> Result<Vec<u8>, String> {
    let path = directory.join(key);
    let unreadable = |error: io::Error| format!("{} cannot be read: {error}", path.display());
    let metadata = fs::metadata(&path).map_err(unreadable)?;
    if metadata.len() > LARGEST_FILE {
        return Err(format!("{} is larger than 1 MiB", path.display()));
    }
    fs::read(&path).map_err(unreadable)
}

/// `stringData` takes precedence over `data`, as on the API server.
fn from_document(secret: &Secret, key: &str) -> Result<Vec<u8>, String> {
    let text = secret.string_data.as_ref().and_then(|data| data.get(key)).map(|text| text.clone().into_bytes());
    let bytes = || secret.data.as_ref().and_then(|data| data.get(key)).map(|bytes| bytes.0.clone());
    text.or_else(bytes).ok_or_else(|| {
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        let strings = secret.string_data.iter().flat_map(BTreeMap::keys);
        let mut known: Vec<&str> =
            strings.chain(secret.data.iter().flat_map(BTreeMap::keys)).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        format!("Secret {name:?} has no key {key:?}; it has: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use redisbench_benchmark::api::target::CertificateSecretRef;
    use redisbench_wire::plan::TrialPlan;

    use super::*;

    fn target(index: u32) -> Target {
        Target { index, ..TrialPlan::basic("redis:6379").target }
    }

    fn reference(username_key: Option<&str>) -> SecretRef {
        let username_key = username_key.map(str::to_owned);
        SecretRef { name: "s".into(), username_key, password_key: "password".into() }
    }

    fn secret() -> Secret {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "s"},
            "data": {"password": "b2xk", "user": "Ym9i"},
            "stringData": {"password": "new\n"},
        }))
        .unwrap()
    }

    fn resolve(
        reference: &SecretRef,
        documents: &[Secret],
        directories: &[(String, PathBuf)],
    ) -> Result<Credentials, Problem> {
        Secrets { documents, directories }.credentials(&Fields::of_servers(&target(0)), reference)
    }

    #[test]
    fn certificates_are_files_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["tls.crt", "tls.key"] {
            fs::write(directory.path().join(name), name).unwrap();
        }
        let directories = [("client".to_owned(), directory.path().to_owned())];
        let secrets = Secrets { documents: &[secret()], directories: &directories };
        let wanted: TargetSecrets = TargetSecrets {
            credentials: None,
            authorities: Some(AuthoritySecretRef { name: "s".into(), key: "password".into() }),
            certificate: Some(CertificateSecretRef { name: "client".into() }),
        };
        let fields = Fields::of_servers(&target(1));
        let access = |wanted: &TargetSecrets, certificates| secrets.access(&fields, wanted, certificates);
        let found = access(&wanted, true).unwrap();
        assert_eq!(found.files(), [("ca.crt", "new\n"), ("tls.crt", "tls.crt"), ("tls.key", "tls.key")]);
        fs::remove_file(directory.path().join("tls.key")).unwrap();
        let problem = access(&wanted, true).unwrap_err();
        assert_eq!(problem.field, "spec.targets[1].tls.clientCertificateSecretRef.name");
        assert_eq!(access(&wanted, false), Ok(Access::default()));
        assert_eq!(access(&TargetSecrets::default(), true), Ok(Access::default()));
    }

    #[test]
    fn what_is_of_sentinels_is_in_one_folder() {
        let secrets = Secrets { documents: &[secret()], directories: &[] };
        let wanted = TargetSecrets {
            credentials: Some(reference(Some("user"))),
            authorities: Some(AuthoritySecretRef { name: "s".into(), key: "password".into() }),
            certificate: None,
        };
        let fields = Fields::of_sentinels(&target(0));
        let found = secrets.access(&fields, &wanted, true).unwrap();
        assert_eq!(found.files(), [("password", "new"), ("username", "bob"), ("ca.crt", "new\n")]);
        let wanted = TargetSecrets { credentials: Some(reference(Some("none"))), ..TargetSecrets::default() };
        let problem = secrets.access(&fields, &wanted, false).unwrap_err();
        assert_eq!(problem.field, "spec.targets[0].sentinel.auth.secretRef.usernameKey");
    }

    #[test]
    fn from_the_manifest() {
        let credentials = resolve(&reference(Some("user")), &[secret()], &[]).unwrap();
        assert_eq!((credentials.username.as_deref(), credentials.password.as_str()), (Some("bob"), "new"));
        let credentials = resolve(&reference(None), &[secret()], &[]).unwrap();
        assert_eq!(credentials.username, None);
    }

    #[test]
    fn a_directory_wins() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("password"), "from a file\n").unwrap();
        let directories = [("s".to_owned(), directory.path().to_owned())];
        let credentials = resolve(&reference(None), &[secret()], &directories).unwrap();
        assert_eq!(credentials.password, "from a file");
        let problem = resolve(&reference(Some("user")), &[secret()], &directories).unwrap_err();
        assert_eq!(problem.field, "spec.targets[0].auth.secretRef.usernameKey");
    }

    #[test]
    fn what_is_missing_is_named() {
        let problem = resolve(&reference(None), &[], &[]).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "spec.targets[0].auth.secretRef.name: Secret \"s\" was not found; add it to the manifest's file or \
             read it from a directory: --secret s=DIR"
        );
        let problem = resolve(&reference(Some("username")), &[secret()], &[]).unwrap_err();
        assert!(problem.message.ends_with("has no key \"username\"; it has: password, user"), "{problem}");
        assert!(!problem.message.contains("new"));
    }
}
