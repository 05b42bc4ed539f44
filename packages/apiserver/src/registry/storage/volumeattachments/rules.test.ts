import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "volumeattachments.storage.k8s.io",
  { spec: { attacher: "a", nodeName: "n", source: { persistentVolumeName: "v" } } },
  [
    { name: "an attachment", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { spec: { attacher: "", nodeName: "", source: {} } },
      want: [
        "spec.attacher: Required value",
        "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
        "spec.nodeName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.attacher: Required value",
        "spec.attacher: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "another node",
      change: { "spec.nodeName": "m" },
      before: {},
      want: [
        'spec: Invalid value: map[string]interface {}{"attacher":"a", "nodeName":"m", "source":map[string]string{"persistentVolumeName":"v"}}: field is immutable',
      ],
    },
  ],
);
