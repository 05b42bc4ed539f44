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
  ],
);
