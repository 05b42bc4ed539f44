import type { PartDefinition } from "./part.ts";

/** All parts, in start order. A part's code is in the folder of its name. */
export const parts: readonly PartDefinition[] = [];
