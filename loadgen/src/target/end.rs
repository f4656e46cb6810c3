//! Why a look at one address ended early.

use super::finding::Finding;
use super::trouble::Trouble;

/// Why a look at one address ended early.
pub(super) enum End {
    /// A command got no answer or an error.
    Trouble(Trouble),
    Judged(Finding),
}

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<Finding> for End {
    fn from(finding: Finding) -> Self {
        Self::Judged(finding)
    }
}
