import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("controllerrevisions.apps", { data: { a: 1 }, revision: 1 }, [
  { name: "a revision", change: {}, want: [] },
  {
    name: "no data and a negative number",
    change: { data: undefined, revision: -1 },
    want: ["data: Required value: data is mandatory", "revision: Invalid value: -1: must be greater than or equal to 0"],
  },
  {
    name: "other data",
    change: { data: { a: 2 } },
    before: {},
    want: [
      'data: Invalid value: runtime.Unknown{TypeMeta:runtime.TypeMeta{APIVersion:"", Kind:""}, Raw:[]uint8{0x7b, 0x22, 0x61, 0x22, 0x3a, 0x32, 0x7d}, ContentEncoding:"", ContentType:"application/json"}: field is immutable',
    ],
  },
  {
    name: "a negative number",
    before: {},
    change: { revision: -1 },
    want: ["revision: Invalid value: -1: must be greater than or equal to 0"],
  },
  {
    name: "the data taken away",
    before: {},
    change: { data: undefined },
    want: ["data: Required value: data is mandatory", 'data: Invalid value: "null": field is immutable'],
  },
]);
