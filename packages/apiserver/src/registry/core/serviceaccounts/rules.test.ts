import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("serviceaccounts", {}, [
  { name: "an account", change: {}, want: [] },
  {
    name: "a name",
    change: { "metadata.name": "_" },
    want: [
      "metadata.name: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
]);
