import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("runtimeclasses.node.k8s.io", { handler: "h" }, [
  { name: "a class", change: {}, want: [] },
  {
    name: "a handler",
    change: { handler: "_" },
    want: [
      "handler: Invalid value: \"_\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  },
  {
    name: "another handler, of no such name",
    before: {},
    change: { handler: "_" },
    want: [
      "handler: Invalid value: \"_\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      'handler: Invalid value: "_": field is immutable',
    ],
  },
  {
    name: "overhead and where",
    change: {
      overhead: { podFixed: { cpu: "-1" } },
      scheduling: {
        nodeSelector: { "a b": "c" },
        tolerations: [
          { operator: "Equal" },
          { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 },
          { key: "a", operator: "Exists", effect: "NoExecute" },
        ],
      },
    },
    want: [
      'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      "scheduling.nodeSelector: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'scheduling.tolerations.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
      'scheduling.tolerations[2]: Duplicate value: core.Toleration{Key:"a", Operator:"Exists", Value:"", Effect:"NoExecute", TolerationSeconds:(*int64)(nil)}',
    ],
  },
  { name: "another handler", change: { handler: "i" }, before: {}, want: ['handler: Invalid value: "i": field is immutable'] },
]);
