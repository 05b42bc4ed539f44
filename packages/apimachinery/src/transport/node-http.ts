import type { Agent as HttpAgent, ServerResponse as HttpServerResponse } from "node:http";

/**
 * `node:http` for programs that have to start quickly. An import of `node:http` as a module reads all of its exports, some of which
 * make Node load undici: 26 ms and 6 MB of each process. `pnpm layers` refuses such imports of values.
 */
const http = process.getBuiltinModule("node:http");

export const { Agent, createServer, request, ServerResponse, STATUS_CODES, validateHeaderName, validateHeaderValue } = http;
export type Agent = HttpAgent;
export type ServerResponse = HttpServerResponse;
