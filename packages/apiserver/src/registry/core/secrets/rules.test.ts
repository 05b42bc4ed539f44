import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("secrets", {}, [
  { name: "nothing in it", change: {}, want: [] },
  {
    name: "keys",
    change: { data: { "a b": "", "..": "" } },
    want: [
      "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      "data[..]: Invalid value: \"..\": must not be '..'",
    ],
  },
  {
    name: "a token without a service account",
    change: { type: "kubernetes.io/service-account-token" },
    want: ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
  },
  {
    name: "no docker configuration, old and new",
    change: { type: "kubernetes.io/dockercfg" },
    want: ["data[.dockercfg]: Required value"],
  },
  {
    name: "no docker configuration",
    change: { type: "kubernetes.io/dockerconfigjson" },
    want: ["data[.dockerconfigjson]: Required value"],
  },
  {
    name: "a docker configuration that is no JSON",
    change: { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": "eA==" } },
    want: [
      "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'x' looking for beginning of value",
    ],
  },
  {
    name: "no name and password",
    change: { type: "kubernetes.io/basic-auth" },
    want: ["data[%s][username]: Required value", "data[%s][password]: Required value"],
  },
  { name: "no key", change: { type: "kubernetes.io/ssh-auth", data: {} }, want: ["data[%s][ssh-privatekey]: Required value"] },
  {
    name: "no certificate",
    change: { type: "kubernetes.io/tls" },
    want: ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
  },
  { name: "another type", change: { type: "b" }, before: { type: "a" }, want: ['type: Invalid value: "b": field is immutable'] },
  {
    name: "a change of what is fixed",
    change: { data: { a: "YQ==" }, immutable: undefined },
    before: { immutable: true },
    want: [
      "immutable: Forbidden: field is immutable when `immutable` is set",
      "data: Forbidden: field is immutable when `immutable` is set",
    ],
  },
  {
    name: "too much",
    change: { data: { a: Buffer.alloc(1024 * 1024 + 1).toString("base64") } },
    want: ["data: Too long: must have at most 1048576 bytes"],
  },
  {
    name: "a key that is none",
    before: {},
    change: { data: { "a b": "" } },
    want: [
      "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    ],
  },
]);
