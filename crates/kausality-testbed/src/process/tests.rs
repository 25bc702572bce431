use std::io::{BufRead as _, BufReader, Write as _};
use std::time::Duration;

use rustix::process::test_kill_process;

use super::*;
use crate::eventually;

const LONG: Duration = Duration::from_secs(30);

fn sh(script: &str, folder: &Path) -> Spec {
    let args = vec!["-c".to_owned(), script.to_owned()];
    Spec { program: "sh".into(), args, log: folder.join("log"), ..Spec::default() }
}

fn exists(id: u32) -> bool {
    let id = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    test_kill_process(id).is_ok()
}

async fn gone(id: u32) {
    eventually(LONG, format_args!("the end of process {id}"), async || (!exists(id)).then_some(()))
        .await
        .unwrap();
}

#[test]
fn a_process_ends_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let group = Group::start().unwrap();
    let watchdog = group.watchdog.id();
    let process = Process::start(sh("sleep 600", folder.path()), &group).unwrap();
    let id = process.id();
    assert!(exists(id) && exists(watchdog));
    drop(process);
    assert!(!exists(id) && exists(watchdog));
    drop(group);
    assert!(!exists(watchdog));
}

#[test]
fn a_stopped_process_ends_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let group = Group::start().unwrap();
    let process = Process::start(sh("sleep 600", folder.path()), &group).unwrap();
    process.signal(Signal::STOP).unwrap();
    let id = process.id();
    drop(process);
    assert!(!exists(id));
}

#[tokio::test]
async fn a_process_that_dies_is_reported_with_the_end_of_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let group = Group::start().unwrap();
    let script = "echo begin; yes | head -c 5000; echo bind: address already in use >&2; exit 7";
    let mut process = Process::start(sh(script, folder.path()), &group).unwrap();
    let died = eventually(LONG, "its end", async || process.is_running().err()).await.unwrap();
    let text = died.to_string();
    assert!(text.starts_with("sh ended (exit status: 7)"), "{text}");
    assert!(text.ends_with("bind: address already in use\n") && !text.contains("begin"), "{text}");
    assert!(died.downcast::<Died>().unwrap().lost_its_port());
}

#[tokio::test]
async fn a_restart_keeps_the_log_and_changes_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let group = Group::start().unwrap();
    let mut process = Process::start(sh("echo here; sleep 600", folder.path()), &group).unwrap();
    let lines = async |process: &Process, count| {
        let said = || (process.last_words().matches("here\n").count() == count).then_some(());
        eventually(LONG, format_args!("{count} lines"), async || said()).await.unwrap();
    };
    lines(&process, 1).await;
    let before = process.id();
    process.restart(&group, || Ok(())).unwrap();
    assert!(!exists(before) && exists(process.id()));
    lines(&process, 2).await;
}

#[tokio::test]
async fn a_process_is_started_by_another_command_and_with_more_variables() {
    let folder = tempfile::tempdir().unwrap();
    let group = Group::start().unwrap();
    let within = ["env", "ELSEWHERE=there"].map(str::to_owned).to_vec();
    let env = vec![("HERE".to_owned(), "here".to_owned())];
    let spec = Spec { within, env, ..sh("echo $HERE and $ELSEWHERE", folder.path()) };
    let mut process = Process::start(spec, &group).unwrap();
    process.wait();
    assert!(process.last_words().ends_with("here and there\n"), "{}", process.last_words());
}

/// What [`processes_end_with_the_test_process`] kills.
#[test]
#[ignore = "run by another test"]
fn victim() {
    let folder = tempfile::tempdir().unwrap();
    let group = Group::start().unwrap();
    let process = Process::start(sh("exec sleep 600", folder.path()), &group).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "\nids {} {}", process.id(), group.watchdog.id()).unwrap();
    out.flush().unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

#[tokio::test]
async fn processes_end_with_the_test_process() {
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["process::tests::victim", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines();
    let ids = lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("ids ")?.to_owned()));
    let ids: Vec<u32> = ids.unwrap().split(' ').map(|id| id.parse().unwrap()).collect();
    assert!(ids.iter().all(|id| exists(*id)), "{ids:?}");

    test.kill().unwrap();
    test.wait().unwrap();
    for id in ids {
        gone(id).await;
    }
}
