//! The report in headless Chromium, Debian's package `chromium`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::page;
use super::sample::{SMALL, Size, reading};

/// Measures the page from inside. It runs in a copy of the page without its policy against programs.
const PROBE: &str = r##"<script>addEventListener("load", () => {
  const plots = [...document.querySelectorAll("svg.plot")].map(svg => {
    const box = element => element.getBoundingClientRect();
    const axis = element => element.getAttribute("stroke") === "#1C1C1E";
    const marks = [...svg.querySelectorAll("polyline, path, circle, polygon")].filter(element => !axis(element));
    const drawn = marks.filter(element => box(element).width + box(element).height > 0);
    const outside = drawn.filter(element => box(element).left < box(svg).left - 1 || box(element).right > box(svg).right + 1 ||
      box(element).top < box(svg).top - 1 || box(element).bottom > box(svg).bottom + 1);
    const texts = [...svg.querySelectorAll("text")].map(element => [element.textContent.trim(), box(element)])
      .filter(([text]) => text);
    const cut = texts.filter(([, own]) => own.left < box(svg).left - 1 || own.right > box(svg).right + 1);
    const covered = texts.filter(([, own], at) => texts.slice(0, at).some(([, other]) => own.left < other.right && other.left < own.right &&
      own.top < other.bottom - 2 && other.top < own.bottom - 2));
    return {title: svg.querySelector("title").textContent, drawn: drawn.length, outside: outside.length, labels: svg.querySelectorAll("text").length,
      unreadable: cut.concat(covered).map(([text]) => text)};
  });
  const counts = JSON.parse(document.getElementById("heat-counts").textContent).rowsAndCounts;
  const probe = document.createElement("pre");
  probe.id = "probe";
  probe.textContent = JSON.stringify({
    plots, fetched: performance.getEntriesByType("resource").length,
    sum: counts.flatMap(column => column.filter((_, at) => at % 2)).reduce((sum, count) => sum + count, 0),
    wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    back: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.querySelector("svg.plot text")).fill,
    unreachable: [...document.querySelectorAll(".scroll")].filter(part => part.tabIndex < 0 || !part.ariaLabel).length,
  });
  document.body.append(probe);
});</script>"##;

/// Colours of the page and of the text in plots.
const LIGHT: [&str; 2] = ["rgb(255, 255, 255)", "rgb(28, 28, 30)"];
const DARK: [&str; 2] = ["rgb(20, 20, 22)", "rgb(242, 242, 247)"];

/// Runs Chromium on `page`, with a color scheme of 0 (dark) or 1 (light). Returns the document after loading, and what was logged.
fn open(page: &Path, window: &str, scheme: u8, what: &str) -> (String, Vec<String>) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--enable-logging=stderr",
            "--log-level=0",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={window}"))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(what)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("failed to start chromium: install Debian's package chromium");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let logged = String::from_utf8_lossy(&output.stderr);
    let console = logged.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

fn probed(page: &Path, window: &str, scheme: u8) -> Value {
    let (document, logged) = open(page, window, scheme, "--dump-dom");
    assert_eq!(logged, [""; 0]);
    let (_, probe) = document.split_once("id=\"probe\">").unwrap_or_else(|| panic!("no probe in {document}"));
    let probe = probe.split_once("</pre>").unwrap().0;
    serde_json::from_str(&probe.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap()
}

/// Where screenshots go: to the docs with UPDATE=1.
fn images(directory: &Path) -> PathBuf {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images");
    if std::env::var_os("UPDATE").is_some() { docs } else { directory.to_owned() }
}

#[test]
#[ignore = "needs Chromium; `make test-report` runs it"]
fn a_browser_draws_every_plot_and_fetches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let size = Size { trials: 8, seconds: 120, ..SMALL };
    let reading = reading(size, "session-cache");
    let page = page(&reading, Some(0)).unwrap();
    let file = directory.path().join("report.html");
    std::fs::write(&file, &page).unwrap();
    let (document, logged) = open(&file, "1280,900", 1, "--dump-dom");
    assert_eq!(logged, [""; 0]);
    assert!(document.contains("</main>"));

    let copy = directory.path().join("probed.html");
    let policy = page.split_once("<meta http-equiv").unwrap().1.split_once('>').unwrap().0;
    let free = page.replace(&format!("<meta http-equiv{policy}>"), "").replace("</body>", &format!("{PROBE}</body>"));
    std::fs::write(&copy, free).unwrap();
    for (window, scheme, [back, ink]) in
        [("1280,900", 1, LIGHT), ("1100,900", 1, LIGHT), ("390,844", 1, LIGHT), ("1280,900", 0, DARK)]
    {
        let probe = probed(&copy, window, scheme);
        for plot in probe["plots"].as_array().unwrap() {
            assert!(plot["drawn"].as_u64().unwrap() > 0 && plot["labels"].as_u64().unwrap() > 3, "{plot}");
            assert_eq!(plot["outside"], 0, "{plot}");
            assert_eq!(plot["unreadable"], json!([]), "{plot}");
        }
        assert!(probe["plots"].as_array().unwrap().len() >= 10);
        assert_eq!((&probe["back"], &probe["ink"]), (&json!(back), &json!(ink)), "{window}");
        for part in ["fetched", "wider", "unreachable"] {
            assert_eq!(probe[part], 0, "{part} in a window of {window}");
        }
        let shown = reading.measurements.iter().find(|one| one.trial.index == 0).unwrap();
        assert_eq!(probe["sum"], shown.result.requests.succeeded);
    }

    let images = images(directory.path());
    let page = super::page(&self::reading(Size { trials: 1, rate: 2_000, ..size }, "session-cache"), None).unwrap();
    std::fs::write(&file, &page).unwrap();
    std::fs::create_dir_all(&images).unwrap();
    for (name, window, scheme) in
        [("report-light.png", "1100,2600", 1), ("report-dark.png", "1100,2600", 0), ("report-phone.png", "390,2600", 1)]
    {
        let image = images.join(name);
        open(&file, window, scheme, &format!("--screenshot={}", image.display()));
        assert!(std::fs::metadata(&image).unwrap().len() > 10_000, "{name} is empty");
    }
}
