// The operator in kube-rs.
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Config};
use kube::runtime::{Controller, watcher};
use kube::{Client, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "bench.example.org", version = "v1", kind = "Thing", namespaced, status = "ThingStatus", schema = "disabled")]
struct ThingSpec {
    a: i64,
    b: i64,
    text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ThingStatus {
    #[serde(default)]
    seen: i64,
}

#[derive(Default)]
struct Notes {
    names: HashSet<String>,
    seen: HashMap<i64, f64>,
}

static NOTES: LazyLock<Mutex<Notes>> = LazyLock::new(Mutex::default);

fn number(name: &str) -> i64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

static COUNT: LazyLock<usize> = LazyLock::new(|| number("BENCH_COUNT") as usize);
static EPOCH: LazyLock<i64> = LazyLock::new(|| number("BENCH_EPOCH"));
static STATUS: LazyLock<bool> = LazyLock::new(|| number("BENCH_STATUS") == 1);

/// The clock that Python's time.monotonic() shows.
fn now() -> f64 {
    let mut moment = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut moment) }, 0);
    moment.tv_sec as f64 + moment.tv_nsec as f64 / 1e9
}

fn say(what: &str) {
    println!("{what} {:.6}", now());
    std::io::stdout().flush().expect("standard output");
}

fn note(name: String, number: i64) {
    let mut notes = NOTES.lock().expect("notes");
    notes.seen.entry(number).or_insert_with(now);
    if notes.names.len() < *COUNT {
        notes.names.insert(name);
        if notes.names.len() == *COUNT {
            say("first-pass");
        }
    }
}

async fn reconcile(thing: Arc<Thing>, client: Arc<Client>) -> Result<Action, kube::Error> {
    note(thing.name_any(), thing.spec.b);
    let wanted = thing.spec.b + *EPOCH;
    if *STATUS && thing.status.as_ref().is_none_or(|status| status.seen != wanted) {
        let api: Api<Thing> = Api::namespaced((*client).clone(), &thing.namespace().expect("a namespace"));
        let patch = Patch::Merge(serde_json::json!({"status": {"seen": wanted}}));
        api.patch_status(&thing.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(Action::await_change())
}

fn again(_: Arc<Thing>, _: &kube::Error, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(1))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    say("started");
    let client = Client::try_default().await?;
    let controller = Controller::new(Api::<Thing>::all(client.clone()), watcher::Config::default())
        .with_config(Config::default().concurrency(10));
    let store = controller.store();
    tokio::spawn(async move {
        if store.wait_until_ready().await.is_ok() {
            say("synced");
        }
    });
    let mut ended = signal(SignalKind::terminate())?;
    let work = controller.run(reconcile, again, Arc::new(client)).for_each(|_| futures::future::ready(()));
    tokio::select! { () = work => {}, _ = ended.recv() => {} }
    let notes = NOTES.lock().expect("notes");
    std::fs::write(std::env::var("BENCH_OUT")?, serde_json::to_string(&notes.seen)?)?;
    Ok(())
}
