//! A manifest in the making: from flags, from answers, or from another tool's command line.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::credentials::Confidential;
use crate::manifest::{self, API_VERSION, KIND, Manifest, Problem};

/// The Secret with the target's credentials.
pub const LOGIN: &str = "redis-auth";
const AUTHORITY: &str = "redis-ca";
const CERTIFICATE: &str = "redis-client-certificate";

/// A manifest in the making.
#[derive(Clone, Debug)]
pub struct Draft {
    name: String,
    spec: Value,
    secrets: Vec<Needed>,
    /// Remarks for its author, such as options without a counterpart.
    pub remarks: Vec<String>,
}

/// A Secret that the manifest refers to.
#[derive(Clone, Debug)]
struct Needed {
    name: &'static str,
    files: Vec<(&'static str, Origin)>,
}

/// Where the value of a Secret's key comes from.
#[derive(Clone, Debug)]
enum Origin {
    Password,
    UserName(String),
    File(PathBuf),
}

impl Draft {
    /// An empty one for a benchmark called `name`.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), spec: json!({}), secrets: Vec::new(), remarks: Vec::new() }
    }

    /// Sets the field at `path` below the spec, such as `targets/0/database`.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) {
        let mut at = &mut self.spec;
        for step in path.split('/') {
            at = if let Ok(index) = step.parse::<usize>() {
                if !at.is_array() {
                    *at = json!([]);
                }
                if let Some(items) = at.as_array_mut().filter(|items| items.len() <= index) {
                    items.resize(index + 1, Value::Null);
                }
                &mut at[index]
            } else {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[step]
            };
        }
        *at = value.into();
    }

    /// The same if there is a value.
    pub fn set_if(&mut self, path: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(path, value);
        }
    }

    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    pub fn has(&self, path: &str) -> bool {
        self.spec.pointer(&format!("/{path}")).is_some()
    }

    pub fn set_default(&mut self, path: &str, value: impl Into<Value>) {
        if !self.has(path) {
            self.set(path, value);
        }
    }

    /// Requires a password, of the default user or of `user`.
    pub fn log_in(&mut self, user: Option<&str>) {
        self.set("targets/0/auth/secretRef/name", LOGIN);
        let mut files = vec![("password", Origin::Password)];
        if let Some(user) = user {
            self.set("targets/0/auth/secretRef/usernameKey", "username");
            files.push(("username", Origin::UserName(user.to_owned())));
        }
        self.secrets.push(Needed { name: LOGIN, files });
    }

    /// Trusts the authorities whose certificates are in `file`.
    pub fn trust(&mut self, file: PathBuf) {
        self.set("targets/0/tls/caSecretRef/name", AUTHORITY);
        self.secrets.push(Needed { name: AUTHORITY, files: vec![("ca.crt", Origin::File(file))] });
    }

    /// Presents the certificate in `certificate`, with the private key in `key`.
    pub fn present(&mut self, certificate: PathBuf, key: PathBuf) {
        self.set("targets/0/tls/clientCertificateSecretRef/name", CERTIFICATE);
        let files = vec![("tls.crt", Origin::File(certificate)), ("tls.key", Origin::File(key))];
        self.secrets.push(Needed { name: CERTIFICATE, files });
    }

    /// Commands that provide the Secrets, without their values.
    pub fn instructions(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Needed { name, files } in &self.secrets {
            let sources: Vec<String> = files
                .iter()
                .map(|(key, origin)| match origin {
                    Origin::Password => format!("--from-file={key}=FILE"),
                    Origin::UserName(user) => format!("--from-literal={key}={user}"),
                    Origin::File(path) => format!("--from-file={key}={}", path.display()),
                })
                .collect();
            let keys: Vec<&str> = files.iter().map(|(key, _)| *key).collect();
            // The command alone, to be copied.
            lines.push(format!("Needs the Secret {name}. On a cluster:"));
            lines.push(format!("kubectl create secret generic {name} {}", sources.join(" ")));
            lines.push(format!(
                "With local: --secret {name}=DIR, a directory with a file for each of: {}",
                keys.join(", ")
            ));
        }
        lines
    }

    pub fn secrets(&self, password: Option<&Confidential>) -> Result<Vec<Secret>, Problem> {
        let secret = |needed: &Needed| -> Result<Secret, Problem> {
            let mut data = BTreeMap::new();
            for (key, origin) in &needed.files {
                let value = match origin {
                    Origin::Password => password.map(Confidential::reveal).unwrap_or_default().into(),
                    Origin::UserName(user) => user.clone().into_bytes(),
                    Origin::File(path) => fs::read(path)
                        .map_err(|error| Problem::file(format!("{} cannot be read: {error}", path.display())))?,
                };
                data.insert((*key).to_owned(), ByteString(value));
            }
            let metadata = ObjectMeta { name: Some(needed.name.to_owned()), ..ObjectMeta::default() };
            Ok(Secret { metadata, data: Some(data), ..Secret::default() })
        };
        self.secrets.iter().map(secret).collect()
    }

    /// The manifest, checked like one from a file, with these `secrets`.
    ///
    /// # Errors
    /// All its problems.
    pub fn manifest(&self, secrets: Vec<Secret>) -> Result<Manifest, Vec<Problem>> {
        let metadata = json!({"name": self.name});
        let document = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": self.spec});
        let manifest = manifest::of(document, secrets)?;
        manifest::compile(&manifest.benchmark)?;
        Ok(manifest)
    }
}

#[cfg(test)]
impl Draft {
    /// The spec as it would be written.
    pub fn spec(&self) -> &Value {
        &self.spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_by_their_path() {
        let mut draft = Draft::new("a");
        draft.set("targets/0/name", "redis");
        draft.set("targets/0/database", 3);
        draft.set_default("targets/0/database", 4);
        draft.set_if("load/rate", None::<u64>);
        assert_eq!(draft.spec, json!({"targets": [{"name": "redis", "database": 3}]}));
    }

    #[test]
    fn a_password_is_in_the_secret_only() {
        let mut draft = Draft::new("a");
        draft.log_in(Some("bob"));
        let password = Confidential::from("hunter2".to_owned());
        let secrets = draft.secrets(Some(&password)).unwrap();
        let data = secrets[0].data.as_ref().unwrap();
        assert_eq!((&data["password"].0[..], &data["username"].0[..]), (&b"hunter2"[..], &b"bob"[..]));
        assert!(!format!("{draft:?}{password:?}{:?}", draft.instructions()).contains("hunter2"));
        assert_eq!(
            draft.instructions()[1],
            "kubectl create secret generic redis-auth --from-file=password=FILE --from-literal=username=bob"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let mut draft = Draft::new("a");
        draft.trust("/does/not/exist".into());
        let problem = draft.secrets(None).unwrap_err();
        assert!(problem.message.starts_with("/does/not/exist cannot be read: "), "{problem}");
    }
}
