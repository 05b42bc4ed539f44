import type { Table } from "../objects/schema/descriptor.ts";
import { tables } from "../objects/schema/kinds/tables.ts";
import { scheme } from "../objects/schema/scheme.ts";

/** The types of all group versions, not only kinds. */
export const allTypes = Object.entries(tables as Readonly<Record<string, Table>>).flatMap(([folder, { types }]) =>
  Object.entries(types).flatMap(([name, row]) => (row.alias !== undefined ? [] : [scheme.type(`${folder}.${name}`)!])),
);
