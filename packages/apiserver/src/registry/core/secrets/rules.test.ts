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
  {
    name: "an empty key of SSH",
    change: { type: "kubernetes.io/ssh-auth", data: { "ssh-privatekey": "" } },
    want: ["data[%s][ssh-privatekey]: Required value"],
  },
  { name: "a key of SSH", change: { type: "kubernetes.io/ssh-auth", data: { "ssh-privatekey": "eA==" } }, want: [] },
  ...["username", "password"].map((key) => ({
    name: `a ${key} alone, which may be empty`,
    change: { type: "kubernetes.io/basic-auth", data: { [key]: "" } },
    want: [],
  })),
  ...["tls.crt", "tls.key"].map((key) => ({
    name: `a ${key} alone`,
    change: { type: "kubernetes.io/tls", data: { [key]: "" } },
    want: [`data[${key === "tls.crt" ? "tls.key" : "tls.crt"}]: Required value`],
  })),
  ...[
    { type: "kubernetes.io/dockercfg", key: ".dockercfg" },
    { type: "kubernetes.io/dockerconfigjson", key: ".dockerconfigjson" },
  ].flatMap(({ type, key }) => [
    ...["{}", " null"].map((text) => ({ name: `${text} as ${key}`, change: { type, data: { [key]: btoa(text) } }, want: [] })),
    {
      name: `a list as ${key}`,
      change: { type, data: { [key]: btoa("[]") } },
      want: [
        `data[${key}]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array into Go value of type map[string]interface {}`,
      ],
    },
  ]),
  {
    name: "a token of a service account",
    change: {
      type: "kubernetes.io/service-account-token",
      "metadata.annotations": { "kubernetes.io/service-account.name": "a" },
    },
    want: [],
  },
  {
    name: "data that may change again",
    before: { immutable: true, data: { a: "YQ==" } },
    change: { immutable: false },
    want: ["immutable: Forbidden: field is immutable when `immutable` is set"],
  },
  {
    name: "a label of what is fixed",
    before: { immutable: true, data: { a: "YQ==" } },
    change: { "metadata.labels": { a: "b" } },
    want: [],
  },
  { name: "data that are fixed from now on", before: { data: { a: "YQ==" } }, change: { data: {}, immutable: true }, want: [] },
  ...[undefined, { a: "YQ==" }, { a: "Yg==", b: "Yg==" }].map((data) => ({
    name: `${JSON.stringify(data)} instead of what is fixed`,
    before: { immutable: true, data: { a: "YQ==", b: "Yg==" } },
    change: { data },
    want: ["data: Forbidden: field is immutable when `immutable` is set"],
  })),
]);
