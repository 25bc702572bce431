//! Configuration, manifest and index: an OCI image layout in one file.
//!
//! `ctr images import`, `docker load`, `podman load` and `skopeo` read it. Docker before version 25 knows no OCI layouts,
//! and reads `manifest.json` instead, which points at the same files.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::contents::{self, Contents, Program, USER};
use super::layer::{self, plain};

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A date is expected, and the time of the build would make every image another one.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// An image, ready to be loaded.
pub(super) struct Image {
    pub(super) archive: Vec<u8>,
    /// The digest of its manifest, `sha256:…`.
    pub(super) digest: String,
}

/// An image that runs a program. `name` is a repository and a tag.
pub(super) fn image(program: &Program, name: &str, architecture: &str) -> Result<Image> {
    let tag = tag(name)
        .with_context(|| format!("{name} has no tag, as in registry.example.com/kausality:0.1.0"))?;
    let mut layout = Layout::default();
    let layer = layout.blob(LAYER, layer::layer(&contents::contents(program)?)?);
    let config = layout.blob(CONFIG, text(&config(program, architecture, &layer["digest"])));
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
    });
    let mut manifest = layout.blob(MANIFEST, text(&manifest));
    let digest = manifest["digest"].as_str().unwrap_or_default().to_owned();
    manifest["annotations"] =
        json!({ "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag });
    manifest["platform"] = json!({ "os": "linux", "architecture": architecture });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest] });
    let docker = json!([{ "Config": file(&config), "RepoTags": [name], "Layers": [file(&layer)] }]);
    layout.file("oci-layout", text(&json!({ "imageLayoutVersion": "1.0.0" })));
    layout.file("index.json", text(&index));
    layout.file("manifest.json", text(&docker));
    Ok(Image { archive: layer::layer(&layout.0)?, digest })
}

/// What a container engine needs to know to run it. The Dockerfile says the same.
fn config(program: &Program, architecture: &str, layer: &Value) -> Value {
    json!({
        "created": CREATED,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [program.path()],
            "WorkingDir": "/",
            "Env": [
                "PATH=/usr/local/bin",
                // Memory that a list took goes back to the system once it is free: without this, glibc learns to keep it.
                "MALLOC_TRIM_THRESHOLD_=131072",
            ],
            "Labels": {
                "org.opencontainers.image.title": program.name,
                "org.opencontainers.image.description":
                    "Stops Kubernetes controllers from making changes nobody asked for",
                "org.opencontainers.image.source": "https://github.com/kausality-io/kausality",
                "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [layer] },
        "history": [{ "created": CREATED, "created_by": "cargo xtask image" }],
    })
}

/// The tag of a name, if it has one: what follows a colon after the last slash.
fn tag(name: &str) -> Option<&str> {
    let last = name.rsplit('/').next()?;
    last.split_once(':').map(|(_, tag)| tag).filter(|tag| !tag.is_empty())
}

/// The files of an archive.
#[derive(Default)]
struct Layout(Contents);

impl Layout {
    fn file(&mut self, path: &str, content: impl AsRef<[u8]>) {
        self.0.insert(path.into(), plain(content.as_ref()));
    }

    /// Adds a file named after its digest, and gives its descriptor.
    fn blob(&mut self, media_type: &str, content: impl AsRef<[u8]>) -> Value {
        let content = content.as_ref();
        let digest: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        self.file(&format!("blobs/sha256/{digest}"), content);
        json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": content.len() })
    }
}

/// The path of a blob, by its descriptor.
fn file(descriptor: &Value) -> String {
    let digest = descriptor["digest"].as_str().unwrap_or_default();
    format!("blobs/{}", digest.replace(':', "/"))
}

fn text(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_not_a_tag() {
        for (name, expected) in [
            ("kausality:1", Some("1")),
            ("registry.example.com:5000/team/kausality:0.1.0", Some("0.1.0")),
            ("registry.example.com:5000/kausality", None),
            ("kausality:", None),
            ("kausality", None),
        ] {
            assert_eq!(tag(name), expected, "{name}");
        }
    }
}
