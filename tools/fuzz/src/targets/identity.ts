/** Tokens, keys and certificates. */

import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { parseBundle } from "@coxswain/apimachinery/serving/authentication/x509";
import { pathLengthOf, subjectOf } from "@coxswain/apimachinery/serving/certificate-fields";
import { parseCertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { readAll, readString } from "@coxswain/apimachinery/serving/der";
import { nameToSign, subjectOfName } from "@coxswain/apimachinery/serving/distinguished-name";
import { bootstrapToken } from "@coxswain/apiserver/authentication/bootstrap-token";
import { parseCsv } from "@coxswain/apiserver/authentication/csv";
import { untrustedIssuer } from "@coxswain/apiserver/authentication/oidc-verifier";
import { parseKeys } from "@coxswain/apiserver/authentication/service-account-keys";
import { caPem, clientPem, requestPem, serviceAccountKeyPem } from "../seeds/identity.ts";
import type { Target } from "../target.ts";

const der = (pem: string): Buffer => Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64");
const pem = (label: string, bytes: Buffer): string =>
  `-----BEGIN ${label}-----\n${bytes.toString("base64")}\n-----END ${label}-----\n`;
const name = Buffer.from("310f300d060355040a0c066e6f646573310c300a06035504030c0361626331", "hex");

export const targets: readonly Target[] = [
  {
    name: "jwt",
    seeds: [`e30.${Buffer.from('{"iss":"https://a","aud":["b"]}').toString("base64url")}.x`],
    declares: [Error],
    run: (input) => void untrustedIssuer(input.toString()),
  },
  {
    name: "jwt-claims",
    seeds: ['{"iss":"accounts.google.com"}', '{"iss":null}'],
    dictionary: ['"iss":', "null", "[]"],
    declares: [Error],
    run: (input) => void untrustedIssuer(`e30.${input.toString("base64url")}.x`),
  },
  {
    name: "bootstrap-token",
    seeds: [
      '{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true","auth-extra-groups":"system:bootstrappers:a","expiration":"2099-01-01T00:00:00Z"}',
    ],
    dictionary: ['"expiration":"', "system:bootstrappers:", ",", '":"'],
    declares: [SyntaxError],
    async run(input) {
      const written = JSON.parse(input.toString()) as Record<string, unknown> | null; // cast: every field is unknown
      const data = Object.fromEntries(
        Object.entries(written ?? {}).map(([key, value]) => [key, Buffer.from(String(value)).toString("base64")]),
      );
      const secret = { metadata: {}, type: "bootstrap.kubernetes.io/token", data };
      await bootstrapToken({ get: async () => secret }, realClock)("abcdef.0123456789abcdef", undefined);
    },
  },
  {
    name: "csv",
    seeds: ['a,b,c,"d,e"\n\n"x""y",2,3\r\n'],
    dictionary: ['"', '""', ",", "\n", "\r\n"],
    declares: [Error],
    run: (input) => void parseCsv(input.toString()),
  },
  {
    name: "public-keys",
    seeds: [serviceAccountKeyPem],
    dictionary: ["-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"],
    run: (input) => void parseKeys(input.toString("latin1")),
  },
  {
    name: "certificate",
    seeds: [der(caPem), der(clientPem)],
    declares: [Error],
    maxBytes: 2048,
    run(input) {
      for (const certificate of parseBundle(pem("CERTIFICATE", input), "a")) {
        subjectOf(certificate);
        pathLengthOf(certificate);
      }
    },
  },
  {
    name: "certificate-request",
    seeds: [der(requestPem)],
    declares: [Error],
    maxBytes: 2048,
    async run(input) {
      try {
        await parseCertificateRequest(pem("CERTIFICATE REQUEST", input));
      } catch (err) {
        // The library has its own error classes, and WebCrypto throws TypeError for an invalid key.
        if (!(err instanceof Error) || err instanceof RangeError) throw err;
      }
    },
  },
  {
    name: "distinguished-name",
    seeds: [Buffer.concat([Buffer.of(0x30, name.length), name])],
    declares: [Error],
    run(input) {
      for (const element of readAll(input)) readString(element);
      subjectOfName(input);
      nameToSign(input);
    },
  },
];
