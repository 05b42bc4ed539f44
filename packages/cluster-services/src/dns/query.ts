import { checkingDisabled, flags, headerBytes, rcodes, types } from "./protocol.ts";

/** A client's query. */
export interface Query {
  readonly id: number;
  readonly recursionDesired: boolean;
  readonly checkingDisabled: boolean;
  /** Lower case, without the last dot; a dot or backslash within a label is preceded by a backslash. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** Name, type and class as the client wrote them; a response repeats them. Of zero length when they cannot be read. */
  readonly question: Buffer;
  readonly edns: Edns | undefined;
}

interface Edns {
  /** Longest UDP response that the client takes. */
  readonly payloadBytes: number;
  readonly dnssecOk: boolean;
}

/** A message that is refused with an error response, or dropped. */
interface Unanswerable {
  /** undefined: a response, or too short to identify the query; to be dropped. */
  readonly rcode: number | undefined;
  readonly query: Query;
}

const mostNameBytes = 255;
const mostAdditionals = 2; // OPT and a signature

/**
 * Reads a request. Constant cost: one question, without compression, and at most two additional records.
 * @returns the query, or why there is none
 */
export function parseQuery(message: Buffer): Query | Unanswerable {
  const none: Query = { ...emptyQuery, id: message.length >= 2 ? message.readUInt16BE(0) : 0 };
  if (message.length < headerBytes) return { rcode: undefined, query: none };
  const bits = message.readUInt16BE(2);
  if ((bits & flags.response) !== 0) return { rcode: undefined, query: none };
  const header: Query = {
    ...none,
    recursionDesired: (bits & flags.recursionDesired) !== 0,
    checkingDisabled: (bits & checkingDisabled) !== 0,
  };
  if (((bits >> 11) & 15) !== 0) return { rcode: rcodes.notImp, query: header };
  const additionals = message.readUInt16BE(10);
  const isOneQuestion = message.readUInt16BE(4) === 1 && message.readUInt32BE(6) === 0;
  if (!isOneQuestion || additionals > mostAdditionals) return { rcode: rcodes.formErr, query: header };
  const name = readPlainName(message, headerBytes);
  if (name === undefined || name.end + 4 > message.length) return { rcode: rcodes.formErr, query: header };
  const query: Query = {
    ...header,
    name: name.text,
    type: message.readUInt16BE(name.end),
    class: message.readUInt16BE(name.end + 2),
    question: message.subarray(headerBytes, name.end + 4),
  };
  return withEdns(query, message, name.end + 4, additionals);
}

const emptyQuery: Query = {
  id: 0,
  recursionDesired: false,
  checkingDisabled: false,
  name: "",
  type: 0,
  class: 0,
  question: Buffer.alloc(0),
  edns: undefined,
};

function withEdns(query: Query, message: Buffer, start: number, additionals: number): Query | Unanswerable {
  let edns: Edns | undefined;
  let isKnownVersion = true;
  for (let i = 0, at = start; i < additionals; i++) {
    const name = readPlainName(message, at);
    if (name === undefined || name.end + 10 > message.length) return { rcode: rcodes.formErr, query };
    const fixed = name.end;
    at = fixed + 10 + message.readUInt16BE(fixed + 8);
    if (at > message.length) return { rcode: rcodes.formErr, query };
    if (message.readUInt16BE(fixed) !== types.OPT) continue;
    if (edns !== undefined || name.text !== "") return { rcode: rcodes.formErr, query };
    isKnownVersion = message[fixed + 5] === 0;
    edns = { payloadBytes: message.readUInt16BE(fixed + 2), dnssecOk: (message[fixed + 6]! & 0x80) !== 0 };
  }
  const complete = { ...query, edns };
  return isKnownVersion ? complete : { rcode: rcodes.badVers, query: complete };
}

/** A name without compression pointers. @returns undefined for an invalid one */
function readPlainName(message: Buffer, start: number): { text: string; end: number } | undefined {
  let text = "";
  for (let at = start; ; ) {
    const length = message[at];
    if (length === undefined) return undefined;
    at++;
    if (length === 0) return { text, end: at };
    if (length > 63 || at + length > message.length || at + length - start >= mostNameBytes) return undefined;
    if (text !== "") text += ".";
    for (const end = at + length; at < end; at++) text += characters[message[at]!];
  }
}

/** Each byte in lower case. */
const characters: readonly string[] = Array.from({ length: 256 }, (_, code) => {
  if (code >= 0x41 && code <= 0x5a) return String.fromCharCode(code + 32);
  return code === 0x2e || code === 0x5c ? `\\${String.fromCharCode(code)}` : String.fromCharCode(code);
});
