import type { Case } from "../case.ts";
import { bodyCases } from "./bodies.ts";
import { extensionCases } from "./extensions.ts";
import { floodCases } from "./floods.ts";
import { http1Cases } from "./http1.ts";
import { http2Cases } from "./http2.ts";
import { nodeCases } from "./nodes.ts";

/** Run sequentially, in this order. */
export const cases: readonly Case[] = [
  ...http2Cases,
  ...http1Cases,
  ...floodCases,
  ...bodyCases,
  ...nodeCases,
  ...extensionCases,
];
