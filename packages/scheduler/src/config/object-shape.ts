import type { ObjectShape, Shape } from "@coxswain/apimachinery/flags/config-shape";

/** @param goName Go's type name, for error texts */
export const object = (goName: string, fields: Readonly<Record<string, Shape>>): ObjectShape => ({ goName, fields });
