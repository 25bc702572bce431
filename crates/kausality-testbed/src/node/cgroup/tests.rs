use super::*;

#[test]
fn trees_are_found_among_the_mounts() {
    let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                  cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                  cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                  cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    let trees = Trees::parse(mounts);
    assert_eq!(trees.old, ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/memory"].map(PathBuf::from));
    assert_eq!(trees.unified, Some("/sys/fs/cgroup/unified".into()));
}

/// Folders stand in for trees: in a real one, a group has its files from the start.
fn version_1() -> (tempfile::TempDir, Trees) {
    let root = tempfile::tempdir().unwrap();
    let old = ["cpuset", "memory"].map(|name| root.path().join(name)).to_vec();
    for tree in &old {
        std::fs::create_dir(tree).unwrap();
    }
    (root, Trees { old, unified: None })
}

#[test]
fn version_1_has_the_group_in_every_tree_and_processors_in_it() {
    let (_root, trees) = version_1();
    std::fs::write(trees.old[0].join("cpuset.cpus"), "0-1\n").unwrap();
    std::fs::write(trees.old[0].join("cpuset.mems"), "0\n").unwrap();
    trees.make("kausality-node-1-0").unwrap();
    let group = trees.old[0].join("kausality-node-1-0");
    assert_eq!(std::fs::read_to_string(group.join("cpuset.cpus")).unwrap(), "0-1\n");
    assert!(trees.old[1].join("kausality-node-1-0").is_dir());
}

#[test]
fn version_2_has_one_group_and_the_controllers_that_there_are() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("cgroup.controllers"), "cpuset cpu io memory pids rdma\n").unwrap();
    let trees = Trees { old: Vec::new(), unified: Some(root.path().to_owned()) };
    trees.make("kausality-node-1-0").unwrap();
    let enabled = std::fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap();
    assert_eq!(enabled, "+cpu +cpuset +memory +pids");
    assert!(root.path().join("kausality-node-1-0").is_dir());
}

#[test]
fn without_control_groups_the_error_says_so() {
    let error = Trees::default().make("kausality-node-1-0").unwrap_err();
    assert_eq!(error.to_string(), "no control groups are mounted (/sys/fs/cgroup)");
}

#[test]
fn a_group_goes_with_all_below_it() {
    let (_root, trees) = version_1();
    trees.make("kausality-node-1-0").unwrap();
    std::fs::create_dir_all(trees.old[0].join("kausality-node-1-0/kubepods/besteffort/pod1")).unwrap();
    trees.remove("kausality-node-1-0", Duration::ZERO).unwrap();
    assert!(trees.old.iter().all(|tree| below(tree).is_empty()));
    trees.remove("kausality-node-1-0", Duration::ZERO).unwrap();
}

#[test]
fn groups_of_dead_processes_go_and_others_stay() {
    let (_root, trees) = version_1();
    for name in ["kausality-node-1-0", "kausality-node-2-0", "user.slice"] {
        trees.make(name).unwrap();
    }
    trees.remove_stale(|process| process == "2");
    let mut left: Vec<_> =
        below(&trees.old[0]).into_iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    left.sort();
    assert_eq!(left, ["kausality-node-2-0", "user.slice"]);
}

#[test]
fn the_processes_of_a_container_are_found() {
    let (_root, trees) = version_1();
    let group = Cgroup { name: "kausality-node-1-0".to_owned(), trees: trees.clone() };
    let pod = trees.old[0].join("kausality-node-1-0/kubepods/pod1/abc");
    std::fs::create_dir_all(&pod).unwrap();
    std::fs::write(pod.join("cgroup.procs"), "17\n18\n").unwrap();
    assert_eq!(group.processes_of("abc").unwrap(), [17, 18]);
    assert_eq!(group.processes_of("other").unwrap(), [0; 0]);
    // Real groups are removed although they have files; here one stands in the way.
    std::fs::remove_file(pod.join("cgroup.procs")).unwrap();
}
