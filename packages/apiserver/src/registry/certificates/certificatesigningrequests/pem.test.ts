import assert from "node:assert/strict";
import { test } from "node:test";
import { newCa, newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { certificateFault, certificateRequestFault } from "./pem.ts";

const typeFault = "PEM block type must be CERTIFICATE REQUEST";
const block = (type: string, body = "AAAA", end = type): string => `-----BEGIN ${type}-----\n${body}\n-----END ${end}-----\n`;
const der = (...bytes: number[]): string => block("CERTIFICATE REQUEST", Buffer.from(bytes).toString("base64"));

for (const { name, text, want } of [
  { name: "nothing", text: "", want: typeFault },
  { name: "another type", text: block("CERTIFICATE"), want: typeFault },
  { name: "no end", text: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n", want: typeFault },
  { name: "another end", text: block("CERTIFICATE REQUEST", "AAAA", "CERTIFICATE"), want: typeFault },
  { name: "a beginning within a line", text: `x${block("CERTIFICATE REQUEST")}`, want: typeFault },
  { name: "bytes that are none", text: block("CERTIFICATE REQUEST"), want: "asn1: structure error: tags don't match" },
  {
    name: "a beginning without an end before it",
    text: `-----BEGIN OTHER-----\n${block("CERTIFICATE REQUEST", "AQA=")}`,
    want: "asn1: structure error: tags don't match",
  },
  { name: "one element more", text: der(0x30, 0, 0x30, 0), want: "asn1: syntax error: trailing data" },
  { name: "a length of four bytes", text: der(0x30, 0x84, 0, 0, 0, 0), want: "asn1: structure error: tags don't match" },
  {
    name: "a length of five bytes",
    text: der(0x30, 0x85, 0, 0, 0, 0, 0),
    want: "asn1: syntax error: data truncated",
  },
  { name: "a length of no bytes", text: der(0x30, 0x80, 0, 0), want: "asn1: syntax error: data truncated" },
  { name: "half a length", text: der(0x30, 0x82, 0), want: "asn1: syntax error: data truncated" },
  { name: "less than its length", text: der(0x30, 1), want: "asn1: syntax error: data truncated" },
  {
    name: "an empty block",
    text: "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n",
    want: "asn1: syntax error: data truncated",
  },
]) {
  test(`a request of ${name} is reported as such`, () => assert.equal(certificateRequestFault(Buffer.from(text)), want));
}

const element = (tag: number, ...parts: number[][]): number[] => [tag, parts.flat().length, ...parts.flat()];
const [integer, bits] = [element(2), element(3)];
const sequence = (...parts: number[][]): number[] => element(0x30, ...parts);
const [empty, key] = [sequence(), sequence(sequence(), bits)];
const mismatch = "asn1: structure error: tags don't match";

for (const { name, request, want } of [
  { name: "all parts", request: sequence(sequence(integer, empty, key), empty, bits), want: undefined },
  { name: "attributes", request: sequence(sequence(integer, empty, key, element(0xa0)), empty, bits), want: undefined },
  { name: "a part more", request: sequence(sequence(integer, empty, key), empty, bits, bits), want: mismatch },
  { name: "no signature", request: sequence(sequence(integer, empty, key), empty), want: mismatch },
  { name: "half a part", request: sequence(sequence(integer, empty, key), empty, [3, 1]), want: mismatch },
  { name: "an empty info", request: sequence(empty, empty, bits), want: mismatch },
  { name: "no version", request: sequence(sequence(empty, key), empty, bits), want: mismatch },
  { name: "half an info", request: sequence(sequence(integer, empty, [0x30, 1]), empty, bits), want: mismatch },
  { name: "an empty key", request: sequence(sequence(integer, empty, empty), empty, bits), want: mismatch },
  {
    name: "a key of a part more",
    request: sequence(sequence(integer, empty, sequence(empty, bits, bits)), empty, bits),
    want: mismatch,
  },
  { name: "half a key", request: sequence(sequence(integer, empty, sequence(empty, [3, 1])), empty, bits), want: mismatch },
]) {
  test(`a request with ${name} is ${want === undefined ? "taken" : "refused"}`, () =>
    assert.equal(certificateRequestFault(Buffer.from(der(...request))), want));
}

const { certPem } = await newCa({ commonName: "a" });
const { csrPem } = await newCertificateRequest({ commonName: "a" });

for (const { name, text, want } of [
  { name: "a certificate", text: certPem, want: undefined },
  {
    name: "two certificates with lines that end as on Windows",
    text: `${certPem}${certPem}`.replaceAll("\n", "\r\n"),
    want: undefined,
  },
  { name: "no block", text: "a\n", want: "must contain at least one CERTIFICATE PEM block" },
  {
    name: "a request behind a certificate",
    text: certPem + csrPem,
    want: 'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"',
  },
  {
    name: "a certificate with a header behind another",
    text: certPem + certPem.replace("\n", "\nA: b\n\n"),
    want: "no PEM block headers are permitted",
  },
  { name: "half a certificate", text: block("CERTIFICATE", "MAA="), want: "x509: malformed certificate" },
]) {
  test(`certificates: ${name} ${want === undefined ? "is taken" : "is refused"}`, () =>
    assert.equal(certificateFault(Buffer.from(text)), want));
}

test("a request is taken with lines that end as on Windows, with headers, and before another block", () => {
  const headed = csrPem.replace("\n", "\nA: b\n\n");
  for (const text of [csrPem, headed, ...[csrPem, headed].map((one) => one.replaceAll("\n", "\r\n")), csrPem + certPem])
    assert.equal(certificateRequestFault(Buffer.from(text)), undefined);
});

test("the next block is read after a beginning within a line and after one whose line does not end as it should", () => {
  for (const before of ["x-----BEGIN CERTIFICATE REQUEST-----\n", "-----BEGIN CERTIFICATE REQUEST----\n"])
    assert.equal(certificateRequestFault(Buffer.from(before + csrPem)), undefined, before);
});

test("a block of other characters than those of base64 is skipped", () => {
  const odd = block("CERTIFICATE REQUEST", "AA*A");
  assert.equal(certificateRequestFault(Buffer.from(odd + csrPem)), undefined);
  assert.equal(certificateRequestFault(Buffer.from(odd)), typeFault);
});

test("text before, between and after blocks is skipped", () => {
  const text = `before\n${block("CERTIFICATE")}between\r\n${block("KEY")}after`;
  assert.equal(certificateFault(Buffer.from(text)), "x509: malformed certificate");
});

for (const { name, line } of [
  { name: "the same", line: () => "-----BEGIN CERTIFICATE REQUEST-----\n" },
  { name: "different", line: (i: number) => `-----BEGIN A${i}-----\n` },
  { name: "unbroken", line: () => "-----BEGIN " },
]) {
  test(`a text of 60,000 BEGIN lines, ${name}, is parsed in linear time`, () => {
    const text = Array.from({ length: 60_000 }, (_, i) => line(i)).join("");
    const tookMs = cpuMsOf(() => {
      for (const end of ["", "\n-----END X-----\n"]) assert.equal(certificateRequestFault(Buffer.from(text + end)), typeFault);
    });
    assert.ok(tookMs < 1000, `${tookMs} ms`);
  });
}
