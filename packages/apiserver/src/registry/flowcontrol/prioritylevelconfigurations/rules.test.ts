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
        'spec: Invalid value: map[string]interface {}{"limited":map[string]interface {}{"assuredConcurrencyShares":6, "limitResponse":map[string]string{"type":"Reject"}}, "type":"Limited"}: spec of \'catch-all\' must equal the fixed value',
      ],
    },
  ],
);
