//! Objects and the sets of fields that structured-merge-diff makes of them, byte by byte.

use crate::smd;

use kausality_fields::FieldSet;
use kausality_fields::schema::TypeRef;
use kausality_fields::typed::{Duplicates, Type};

#[test]
fn four_golden_sets_are_written_byte_by_byte() {
    let Some(schema) = smd::file("k8s-schema.yaml") else { return };
    let schema = smd::schema(&schema);
    for (object, set, of) in [
        ("pod", "podset", "io.k8s.api.core.v1.Pod"),
        ("node", "nodeset", "io.k8s.api.core.v1.Node"),
        ("endpoints", "endpointsset", "io.k8s.api.core.v1.Endpoints"),
        (
            "prometheus-crd",
            "prometheus-crdset",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition",
        ),
    ] {
        let value = smd::yaml(&smd::file(&format!("{object}.yaml")).unwrap());
        let expected = smd::file(&format!("{set}.json")).unwrap();
        let of = TypeRef::Named(of.to_owned(), None);
        let of = Type::new(&schema, &of);

        of.validate(&value, Duplicates::Refused).unwrap();
        // What somebody owns who creates the object by an update.
        let created = of.compare(&serde_json::json!({}), &value).unwrap().added;
        assert_eq!(created.to_fields_v1(), expected.trim_end(), "{object}");
        assert_eq!(
            FieldSet::from_fields_v1(&expected).unwrap().to_fields_v1(),
            expected.trim_end(),
            "{object}"
        );
    }
}
