import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "podtemplates",
  { template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } } },
  [
    { name: "a template", change: {}, want: [] },
    {
      name: "a container",
      change: { "template.spec.containers[0]": { name: "c" } },
      want: ["template.spec.containers[0].image: Required value"],
    },
    {
      name: "a container without name",
      before: {},
      change: { "template.spec.containers[0].name": "" },
      want: ["template.spec.containers[0].name: Required value"],
    },
    {
      name: "labels and annotations, and profiles that differ from them",
      change: {
        "template.metadata.labels": { "a b": "c" },
        "template.metadata.annotations": {
          "a b": "c",
          "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
          "container.seccomp.security.alpha.kubernetes.io/c": "x",
        },
        "template.spec.securityContext": { seccompProfile: { type: "Unconfined" } },
      },
      want: [
        "template.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "template.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'template.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: "x": must be a valid seccomp profile',
        "template.spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match",
      ],
    },
  ],
);
