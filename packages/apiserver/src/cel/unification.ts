/**
 * Assignability of types and substitution of type parameters.
 * Source: cel-go v0.9 checker/types.go, checker/mapping.go
 */
import { type dyn, isSameType, listOf, mapOf, type Type, typeType } from "./types.ts";

/** Type parameters and the types they are bound to. */
export class Substitutions {
  readonly #found = new Map<string, Type>();
  /** Undo log: previous bindings, restored when an attempt fails. */
  readonly #log: (readonly [name: string, before: Type | undefined])[] = [];

  /** True when each type is assignable to its counterpart. Binds type parameters in that case; otherwise nothing changes. */
  areAssignable(types: readonly Type[], to: readonly Type[]): boolean {
    if (types.length !== to.length) return false;
    const start = this.#log.length;
    if (types.every((type, i) => this.#assign(type, to[i]!))) return true;
    while (this.#log.length > start) {
      const [name, before] = this.#log.pop()!;
      if (before === undefined) this.#found.delete(name);
      else this.#found.set(name, before);
    }
    return false;
  }

  isAssignable(type: Type, to: Type): boolean {
    return this.areAssignable([type], [to]);
  }

  /** Replaces bound type parameters. @param open replaces unbound ones, which are kept by default */
  apply(type: Type, open?: typeof dyn): Type {
    switch (type.kind) {
      case "parameter": {
        const found = this.#found.get(type.name);
        return found === undefined ? (open ?? type) : this.apply(found, open);
      }
      case "list":
        return listOf(this.apply(type.item, open));
      case "map":
        return mapOf(this.apply(type.key, open), this.apply(type.value, open));
      case "type":
        return type.of === undefined ? type : typeType(this.apply(type.of, open));
      default:
        return type;
    }
  }

  #set(name: string, type: Type): void {
    this.#log.push([name, this.#found.get(name)]);
    this.#found.set(name, type);
  }

  #assign(from: Type, to: Type): boolean {
    if (to.kind === "parameter") {
      const { isValid, isKnown } = this.#stand(to, from);
      if (isValid || isKnown) return isValid;
    }
    if (from.kind === "parameter") return this.#stand(from, to).isValid;
    if (isWildcard(from) || isWildcard(to)) return true;
    if (from.kind === "null") return ["object", "null", "wellKnown"].includes(to.kind);
    if (from.kind === "list" && to.kind === "list") return this.#assign(from.item, to.item);
    if (from.kind === "map" && to.kind === "map") return this.#assign(from.key, to.key) && this.#assign(from.value, to.value);
    // All types of types are assignable to each other.
    if (from.kind === "type" || to.kind === "type") return from.kind === to.kind;
    return from.kind !== "unknown" && isSameType(from, to);
  }

  /** Binds a parameter to a type. `isValid`: it can stand for the type; `isKnown`: it was bound before. */
  #stand(parameter: Type & { kind: "parameter" }, type: Type): { readonly isValid: boolean; readonly isKnown: boolean } {
    if (isSameType(parameter, type)) return { isValid: true, isKnown: true };
    const before = this.#found.get(parameter.name);
    if (before !== undefined) {
      if (isSameType(type, before)) return { isValid: true, isKnown: true };
      if (!this.#assign(type, before)) return { isValid: false, isKnown: true };
      const general = mostGeneral(type, before);
      if (!this.#occurs(parameter, general)) this.#set(parameter.name, general);
      return { isValid: true, isKnown: true };
    }
    if (this.#occurs(parameter, type)) return { isValid: false, isKnown: false };
    this.#set(parameter.name, type);
    return { isValid: true, isKnown: false };
  }

  #occurs(parameter: Type & { kind: "parameter" }, within: Type): boolean {
    if (isSameType(parameter, within)) return true;
    switch (within.kind) {
      case "parameter": {
        const found = this.#found.get(within.name);
        return found !== undefined && this.#occurs(parameter, found);
      }
      case "list":
        return this.#occurs(parameter, within.item);
      case "map":
        return this.#occurs(parameter, within.key) || this.#occurs(parameter, within.value);
      default:
        return false;
    }
  }
}

function isWildcard({ kind }: Type): boolean {
  return kind === "dyn" || kind === "error";
}

/** The less specific of two compatible types. */
export function mostGeneral(a: Type, b: Type): Type {
  return isEqualOrLessSpecific(a, b) ? a : b;
}

function isEqualOrLessSpecific(a: Type, b: Type): boolean {
  if (a.kind === "dyn" || a.kind === "parameter") return true;
  if (b.kind === "dyn" || b.kind === "parameter") return false;
  if (a.kind === "list" && b.kind === "list") return isEqualOrLessSpecific(a.item, b.item);
  if (a.kind === "map" && b.kind === "map") return isEqualOrLessSpecific(a.key, b.key) && isEqualOrLessSpecific(a.value, b.value);
  if (a.kind === "type") return b.kind === "type";
  return isSameType(a, b);
}

/** Replaces type parameters by name, to give each use of an overload fresh ones. */
export function renamed(type: Type, names: ReadonlyMap<string, Type>): Type {
  if (names.size === 0) return type;
  switch (type.kind) {
    case "parameter":
      return names.get(type.name) ?? type;
    case "list":
      return listOf(renamed(type.item, names));
    case "map":
      return mapOf(renamed(type.key, names), renamed(type.value, names));
    case "type":
      return type.of === undefined ? type : typeType(renamed(type.of, names));
    default:
      return type;
  }
}
