import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("configmaps", {}, [
  { name: "nothing in it", change: {}, want: [] },
  {
    name: "keys, also in both",
    change: { data: { "a b": "", c: "" }, binaryData: { c: "" } },
    want: [
      "data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      'data[c]: Invalid value: "c": duplicate of key present in binaryData',
    ],
  },
  {
    name: "a change of what is fixed",
    change: { data: { a: "x" }, binaryData: { b: "" }, immutable: false },
    before: { immutable: true },
    want: [
      "immutable: Forbidden: field is immutable when `immutable` is set",
      "data: Forbidden: field is immutable when `immutable` is set",
      "binaryData: Forbidden: field is immutable when `immutable` is set",
    ],
  },
  {
    name: "a key of bytes",
    change: { binaryData: { "a b": "" } },
    want: [
      "binaryData[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    ],
  },
  {
    name: "too much",
    change: { data: { a: "x".repeat(1024 * 1024 + 1) } },
    want: ["[]: Too long: must have at most 1048576 bytes"],
  },
  {
    name: "too much in many parts, and bytes count",
    change: {
      data: { a: "é".repeat(256 * 1024), b: "x".repeat(256 * 1024) },
      binaryData: { c: btoa("y".repeat(256 * 1024 + 1)) },
    },
    want: ["[]: Too long: must have at most 1048576 bytes"],
  },
  {
    name: "as much as is allowed, in many parts",
    change: { data: { a: "é".repeat(256 * 1024), b: "x".repeat(256 * 1024) }, binaryData: { c: btoa("y".repeat(256 * 1024)) } },
    want: [],
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
