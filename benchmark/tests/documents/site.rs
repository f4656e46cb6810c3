//! The pages as a site: `book.toml`, `docs/SUMMARY.md`, and links that lead somewhere, in the repository and on the site.

use std::collections::BTreeSet;
use std::fs;

use redisbench_testkit::documents::{read, root};
use redisbench_testkit::markdown::{anchors, links, pages, parts};

/// Pages of the book, by their paths below `docs`.
fn of_the_book() -> BTreeSet<String> {
    pages().iter().filter_map(|page| page.strip_prefix("docs/")).map(str::to_owned).collect()
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let (prose, _) = parts(&read(&page));
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in links(&prose).filter(|link| !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { root().join(&page) } else { folder.join(path) };
            assert!(target.exists(), "{page} links to {link}");
            let known = anchor.is_empty() || anchors(&parts(&fs::read_to_string(&target).unwrap()).0).contains(anchor);
            assert!(known, "{page} links to {link}, which has no such heading");
        }
    }
}

#[test]
fn the_book_has_every_page_once() {
    let mut pages = of_the_book();
    assert!(pages.remove("SUMMARY.md"), "{pages:?}");
    let summary = read("docs/SUMMARY.md");
    let mut listed = BTreeSet::new();
    for link in links(&summary) {
        assert!(listed.insert(link.to_owned()), "docs/SUMMARY.md lists {link} twice");
    }
    assert_eq!(listed, pages);
    // mdBook writes README.md as index.html, and leaves links to it as they are.
    assert!(pages.iter().all(|page| !page.ends_with("README.md")), "{pages:?}");
    assert!(read("book.toml").contains("\nsrc = \"docs\"\n"));
}

/// Beside the book, the site has copies of what `LINKED` lists, in the same places as in the repository.
#[test]
fn the_site_has_what_its_pages_link_to() {
    let makefile = read("Makefile");
    let linked = makefile.lines().find_map(|line| line.strip_prefix("LINKED := ")).unwrap();
    let copied: Vec<_> = linked.split_whitespace().map(|path| root().join(path).canonicalize().unwrap()).collect();
    let docs = root().join("docs").canonicalize().unwrap();
    for page in of_the_book() {
        let (prose, _) = parts(&read(&format!("docs/{page}")));
        for link in links(&prose).filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let path = link.split('#').next().unwrap_or_default();
            let target = docs.join(&page).parent().unwrap().join(path).canonicalize().unwrap();
            assert!(target.is_file(), "docs/{page} links to {link}: a folder has no page on the site");
            let on_the_site = target.starts_with(&docs) || copied.iter().any(|copied| target.starts_with(copied));
            assert!(on_the_site, "docs/{page} links to {link}, which `make docs` does not copy: add it to LINKED");
        }
    }
}
