import { testKindRules } from "../../../testing/kind-rules.ts";
import { testRefusals } from "../../../testing/refusals.ts";
import { validateApprovalUpdate, validateStatusUpdate } from "./validation.ts";

testKindRules(
  "certificatesigningrequests.certificates.k8s.io",
  { spec: { request: "eA==", signerName: "a.b/c", usages: ["client auth"] } },
  [
    {
      name: "a request that is not PEM",
      change: {},
      want: ["spec.request: Invalid value: []byte{0x78}: PEM block type must be CERTIFICATE REQUEST"],
    },
    {
      name: "usages, a signer and a time",
      change: { spec: { request: "eA==", signerName: "a", usages: ["a", "any", "any"], expirationSeconds: 5 } },
      want: [
        "spec.request: Invalid value: []byte{0x78}: PEM block type must be CERTIFICATE REQUEST",
        'spec.usages[0]: Unsupported value: "a": supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"',
        'spec.usages[2]: Duplicate value: "any"',
        "spec.signerName: Invalid value: \"a\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
        "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 600 seconds (10 minutes)",
      ],
    },
    {
      name: "nothing in it",
      change: { spec: {} },
      want: [
        "spec.request: Invalid value: []byte(nil): PEM block type must be CERTIFICATE REQUEST",
        "spec.usages: Required value: usages must be provided",
        "spec.signerName: Required value: signerName must be provided",
      ],
    },
    {
      name: "a signer of strange names",
      change: { "spec.signerName": "a_b.c/d_e" },
      want: [
        "spec.request: Invalid value: []byte{0x78}: PEM block type must be CERTIFICATE REQUEST",
        "spec.signerName: Invalid value: \"a_b.c\": validating label \"a_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        "spec.signerName: Invalid value: \"d_e\": validating label \"d_e\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "a signer of no domain",
      change: { "spec.signerName": "a/b" },
      want: [
        "spec.request: Invalid value: []byte{0x78}: PEM block type must be CERTIFICATE REQUEST",
        'spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots',
      ],
    },
    {
      name: "a signer whose domain is too long",
      change: { "spec.signerName": `${"a.".repeat(127)}b/c` },
      want: [
        "spec.request: Invalid value: []byte{0x78}: PEM block type must be CERTIFICATE REQUEST",
        "spec.signerName: Too long: must have at most 253 bytes",
      ],
    },
    {
      name: "a signer of three parts",
      change: { "spec.signerName": "a.b/c/d" },
      want: [
        "spec.request: Invalid value: []byte{0x78}: PEM block type must be CERTIFICATE REQUEST",
        "spec.signerName: Invalid value: \"a.b/c/d\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
      ],
    },
    {
      name: "a signer of a long name",
      change: {
        "spec.signerName": `a.${"b".repeat(60)}/${"c".repeat(63)}.${"c".repeat(63)}.${"c".repeat(63)}.${"c".repeat(63)}.${"c".repeat(63)}.${"c".repeat(63)}.${"c".repeat(63)}.${"c".repeat(63)}`,
      },
      want: [
        "spec.request: Invalid value: []byte{0x78}: PEM block type must be CERTIFICATE REQUEST",
        "spec.signerName: Too long: must have at most 571 bytes",
      ],
    },
    {
      name: "an invalid request that is stored already",
      before: { "spec.request": "YQ==" },
      change: {},
      want: ["spec.request: Invalid value: []byte{0x61}: PEM block type must be CERTIFICATE REQUEST"],
    },
  ],
);

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const request = base64(
  [
    "-----BEGIN CERTIFICATE REQUEST-----",
    "MIHGMG4CAQAwDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA",
    "BAWhCqf4HTjXXstAnYWlCfuCQWyQpd/msNz41XkCPX0fXj5NDIOan8yqnD7akI2D",
    "Jj2xBwa+uO4vHWOAy3M6yMSgADAKBggqhkjOPQQDAgNIADBFAiAums7/kC5NxWIR",
    "hqxrGHeCRUndpcacALfRSMXluuauKQIhAJqvSMr4nkoDzMWo/c5Gi9J3XMHKU0QD",
    "MHTQ9KWMcHB2",
    "-----END CERTIFICATE REQUEST-----",
  ].join("\n"),
);
const certificate = base64(
  [
    "-----BEGIN CERTIFICATE-----",
    "MIIBbzCCARWgAwIBAgIURqwSdNZCotgZ3SFeu8afeTI6ar0wCgYIKoZIzj0EAwIw",
    "DDEKMAgGA1UEAwwBYTAgFw0yNjExMjExNDIzMDdaGA8yMTI2MTAyODE0MjMwN1ow",
    "DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABAWhCqf4HTjX",
    "XstAnYWlCfuCQWyQpd/msNz41XkCPX0fXj5NDIOan8yqnD7akI2DJj2xBwa+uO4v",
    "HWOAy3M6yMSjUzBRMB0GA1UdDgQWBBQb6khaTax+GcXYyOXXZaAYeLhFITAfBgNV",
    "HSMEGDAWgBQb6khaTax+GcXYyOXXZaAYeLhFITAPBgNVHRMBAf8EBTADAQH/MAoG",
    "CCqGSM49BAMCA0gAMEUCIQC+nYHZpks6W3L+subjZjSN9pD+ONClnrZAL0kFhJcO",
    "cAIgRtiC6qbzqaaJ09lul+Xp9Zc5jiNjjV2FH3kTehrqJ/I=",
    "-----END CERTIFICATE-----",
  ].join("\n"),
);
const valid = { spec: { request, signerName: "a.b/c", usages: ["client auth"] } };
const approved = { type: "Approved", status: "True" };
const since = "2022-01-01T00:00:00Z";

testKindRules("certificatesigningrequests.certificates.k8s.io", valid, [
  { name: "a request for a certificate", change: {}, want: [] },
  {
    name: "the signer of old",
    change: { "spec.signerName": "kubernetes.io/legacy-unknown" },
    want: [
      'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version',
    ],
  },
  {
    name: "labels of what was wrong before",
    before: { "spec.signerName": "kubernetes.io/legacy-unknown", "spec.usages": ["odd", "odd"] },
    change: { "metadata.labels": { a: "b" } },
    want: [],
  },
  {
    name: "a certificate",
    before: {},
    status: true,
    change: { "status.certificate": certificate },
    want: [],
  },
  {
    name: "a certificate that is none",
    before: {},
    status: true,
    change: { "status.certificate": base64("x") },
    want: ['status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'],
  },
  {
    name: "another certificate",
    before: { "status.certificate": certificate },
    status: true,
    change: { "status.certificate": base64("x") },
    want: [
      'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block',
      "status.certificate: Forbidden: updates may not modify existing certificate content",
    ],
  },
  {
    name: "an approval by the signer",
    before: {},
    status: true,
    change: { "status.conditions": [approved] },
    want: ['status.conditions: Forbidden: updates may not add a condition of type "Approved"'],
  },
  {
    name: "no approval any more, for the signer",
    before: { "status.conditions": [approved] },
    status: true,
    change: { "status.conditions": [] },
    want: ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
  },
  {
    name: "an approval in the signer's words, which are not taken",
    before: { "status.conditions": [{ ...approved, lastUpdateTime: since, lastTransitionTime: since }] },
    status: true,
    change: {
      "status.conditions": [
        { type: "x", status: "True" },
        { ...approved, message: "b" },
      ],
    },
    want: [],
  },
  {
    name: "a denial in the signer's words, which are not taken either",
    before: { "status.conditions": [{ ...approved, type: "Denied", lastUpdateTime: since, lastTransitionTime: since }] },
    status: true,
    change: { "status.conditions": [{ ...approved, type: "Denied", message: "b" }] },
    want: [],
  },
  {
    name: "conditions of no type or state, twice, and one that is gone",
    before: { "status.conditions": [{ type: "Failed", status: "True" }] },
    status: true,
    change: {
      "status.conditions": [
        { type: "", status: "True" },
        { type: "x", status: "Maybe" },
        { type: "x", status: "True" },
      ],
    },
    want: [
      "status.conditions[0].type: Required value",
      'status.conditions[1].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
      'status.conditions[2].type: Duplicate value: "x"',
      'status.conditions: Forbidden: updates may not remove a condition of type "Failed"',
    ],
  },
]);

testRefusals<{ next: object[]; current?: object[] }>(
  ({ next, current = [] }) =>
    validateApprovalUpdate(
      { metadata: {}, ...valid, status: { conditions: next } } as never,
      { metadata: {}, ...valid, status: { conditions: current } } as never,
    ),
  [
    { name: "an approval", input: { next: [approved] }, want: [] },
    {
      name: "a denial beside the approval that is there",
      input: { current: [approved], next: [approved, { type: "Denied", status: "True" }] },
      want: ['status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'],
    },
    {
      name: "a denial beside another one and an approval that are there",
      input: { current: [approved, { type: "Denied", status: "True" }], next: [{ type: "Denied", status: "True" }, approved] },
      want: [],
    },
    {
      name: "an approval that is also a denial, and not true",
      input: { next: [approved, { type: "Denied", status: "False" }] },
      want: [
        'status.conditions[1].status: Unsupported value: "False": supported values: "True"',
        'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
      ],
    },
    {
      name: "an approval that is taken back",
      input: { next: [], current: [approved] },
      want: ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
    },
  ],
);

testRefusals<{ next?: string; current?: string }>(
  ({ next, current }) =>
    validateApprovalUpdate(
      { metadata: {}, ...valid, status: { certificate: next } } as never,
      { metadata: {}, ...valid, status: { certificate: current } } as never,
    ),
  [
    { name: "an approver's update beside a certificate", input: { next: certificate, current: certificate }, want: [] },
    {
      name: "a certificate of an approver",
      input: { next: certificate },
      want: ["status.certificate: Forbidden: updates may not set certificate content"],
    },
    {
      name: "a certificate that an approver takes away",
      input: { current: certificate },
      want: ["status.certificate: Forbidden: updates may not set certificate content"],
    },
  ],
);

testRefusals<{ next: object[]; current?: object[] }>(
  ({ next, current = [] }) =>
    validateStatusUpdate(
      { metadata: {}, ...valid, status: { conditions: next } } as never,
      { metadata: {}, ...valid, status: { conditions: current } } as never,
    ),
  [
    {
      name: "an approval by the signer",
      input: { next: [approved] },
      want: ['status.conditions: Forbidden: updates may not add a condition of type "Approved"'],
    },
    {
      name: "an approval that the signer words anew",
      input: { next: [{ ...approved, message: "b" }], current: [approved] },
      want: ['status.conditions: Forbidden: updates may not modify a condition of type "Approved"\n  [0].message: unset -> "b"'],
    },
  ],
);
