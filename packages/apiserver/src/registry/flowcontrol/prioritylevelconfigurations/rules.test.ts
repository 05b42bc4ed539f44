import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
  { spec: { type: "Limited", limited: { assuredConcurrencyShares: 5, limitResponse: { type: "Reject" } } } },
  [
    { name: "a level", change: {}, want: [] },
    {
      name: "a type",
      change: { spec: { type: "Mine" } },
      want: ['spec.type: Unsupported value: "Mine": supported values: "Exempt", "Limited"'],
    },
    {
      name: "limits without a response",
      change: { "spec.limited": {} },
      want: ['spec.limited.limitResponse.type: Unsupported value: "": supported values: "Queue", "Reject"'],
    },
    {
      name: "limits of what has none",
      change: { "spec.type": "Exempt" },
      want: [
        "spec.type: Invalid value: \"Exempt\": type must be 'Exempt' if and only if name is 'exempt'",
        "spec.limited: Forbidden: must be nil if the type is not Limited",
      ],
    },
    {
      name: "shares and a queue",
      change: {
        "spec.limited": {
          assuredConcurrencyShares: -1,
          limitResponse: { type: "Queue", queuing: { queues: -1, handSize: 9, queueLengthLimit: -1 } },
        },
      },
      want: [
        "spec.limited.assuredConcurrencyShares: Invalid value: -1: must be positive",
        "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
        "spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive",
        "spec.limited.limitResponse.queuing.handSize: Invalid value: 9: should not be greater than queues (-1)",
      ],
    },
    {
      name: "no limits",
      change: { "spec.limited": undefined },
      want: ["spec.limited: Required value: must not be empty when type is Limited"],
    },
    {
      name: "queues where all is rejected",
      change: { "spec.limited.limitResponse": { type: "Reject", queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } } },
      want: ["spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited"],
    },
    {
      name: "no queues where all waits",
      change: { "spec.limited.limitResponse": { type: "Queue", queuing: undefined } },
      want: ["spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited"],
    },
    {
      name: "too many queues, and a hand of none",
      change: {
        "spec.limited.limitResponse": { type: "Queue", queuing: { queues: 10_000_001, handSize: -1, queueLengthLimit: 1 } },
      },
      want: [
        "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000",
        "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive",
      ],
    },
    {
      name: "a hand that is too large",
      change: {
        "spec.limited.limitResponse": { type: "Queue", queuing: { queues: 10_000_000, handSize: 10, queueLengthLimit: 1 } },
      },
      want: [
        "spec.limited.limitResponse.queuing.handSize: Invalid value: 10: required entropy bits of deckSize 10000000 and handSize 10 should not be greater than 60",
      ],
    },
    {
      name: "an unknown response",
      change: { "spec.limited.limitResponse": { type: "Wait" } },
      want: ['spec.limited.limitResponse.type: Unsupported value: "Wait": supported values: "Queue", "Reject"'],
    },
    {
      name: "a condition of no type, twice",
      before: {},
      status: true,
      change: { "status.conditions": [{ type: "" }, { type: "" }] },
      want: [
        "status.conditions[0].type: Required value: must not be empty",
        'status.conditions[1].type: Duplicate value: ""',
        "status.conditions[1].type: Required value: must not be empty",
      ],
    },
  ],
);

testKindRules(
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
  {
    metadata: { name: "catch-all" },
    spec: { type: "Limited", limited: { assuredConcurrencyShares: 5, limitResponse: { type: "Reject" } } },
  },
  [
    { name: "the last level as it is", change: {}, want: [] },
    {
      name: "a last level of more shares",
      change: { "spec.limited.assuredConcurrencyShares": 6 },
      want: [
        "spec: Invalid value: flowcontrol.PriorityLevelConfigurationSpec{Type:\"Limited\", Limited:(*flowcontrol.LimitedPriorityLevelConfiguration)(0xc000000000)}: spec of 'catch-all' must equal the fixed value",
      ],
    },
  ],
);
