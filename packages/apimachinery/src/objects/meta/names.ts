import { randomInt } from "node:crypto";

/** Without vowels and similar looking digits, so that no words are formed. */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";
const suffixLength = 5;
const longestBase = 63 - suffixLength;

/** Appends five random characters; truncates to 63 characters in total. Source: k8s.io/apiserver pkg/storage/names/generate.go */
export function generateName(base: string): string {
  return base.slice(0, longestBase) + randomSuffix(suffixLength);
}

function randomSuffix(length: number): string {
  let text = "";
  for (let i = 0; i < length; i++) text += alphabet[randomInt(alphabet.length)];
  return text;
}

/** Encodes a checksum in the same alphabet, e.g. for pod-template-hash. Source: rand.SafeEncodeString */
export function safeEncode(text: string): string {
  let out = "";
  for (const char of text) out += alphabet[char.codePointAt(0)! % alphabet.length];
  return out;
}
