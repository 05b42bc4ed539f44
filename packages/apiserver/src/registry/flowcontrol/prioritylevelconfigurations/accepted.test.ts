/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";

testAccepted([
  {
    resource,
    name: "limited levels that reject and that queue",
    taken: [
      { "spec.limited.limitResponse": { type: "Reject" } },
      { "spec.limited.limitResponse": { type: "Queue", queuing: {} } },
      { "spec.limited.assuredConcurrencyShares": 1 },
    ],
    refused: [
      [
        { "spec.limited.limitResponse": { type: "" } },
        'spec.limited.limitResponse.type: Unsupported value: "": supported values: "Queue", "Reject"',
      ],
    ],
  },
  {
    resource,
    valid: { metadata: { name: "exempt" }, spec: { type: "Exempt" } },
    name: "the exempt level as it has to be",
    taken: [{}],
  },
  {
    resource,
    valid: {
      metadata: { name: "catch-all" },
      spec: { type: "Limited", limited: { assuredConcurrencyShares: 5, limitResponse: { type: "Reject" } } },
    },
    name: "the last level as it has to be",
    before: {},
    taken: [{}, { "metadata.annotations": { a: "b" } }],
    refused: [
      [{ "spec.limited.assuredConcurrencyShares": 4 }, "spec: Invalid value: flowcontrol.PriorityLevelConfigurationSpec{"],
      [
        { "spec.limited.limitResponse": { type: "Queue", queuing: {} } },
        "spec: Invalid value: flowcontrol.PriorityLevelConfigurationSpec{",
      ],
    ],
  },
  {
    resource,
    name: "no other level without limits",
    taken: [{}],
    refused: [
      [{ spec: { type: "Exempt" } }, `spec.type: Invalid value: "Exempt": type must be 'Exempt' if and only if name is 'exempt'`],
    ],
  },
]);
