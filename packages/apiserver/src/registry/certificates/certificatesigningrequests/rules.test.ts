import { testKindRules } from "../../../testing/kind-rules.ts";

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
        "spec.signerName: Required value",
      ],
    },
  ],
);
