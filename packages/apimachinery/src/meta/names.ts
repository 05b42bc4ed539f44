import { randomInt } from "node:crypto";

/** No vowels and nothing that looks like one, so that no word comes out. */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";
const suffixLength = 5;
const longestBase = 63 - suffixLength;

/** `base` with five random characters behind it, at most 63 in all. Source: k8s.io/apiserver pkg/storage/names/generate.go */
export function generateName(base: string): string {
  return base.slice(0, longestBase) + randomSuffix(suffixLength);
}

function randomSuffix(length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) text += alphabet[randomInt(alphabet.length)];
  return text;
}

/** A checksum in the same alphabet, as pod-template-hash is written. Source: rand.SafeEncodeString */
export function safeEncode(text: string): string {
  let out = "";
  for (const char of text) out += alphabet[(char.codePointAt(0) as number) % alphabet.length];
  return out;
}
