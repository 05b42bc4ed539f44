/** The user's identity: a token entered on the page, or the credentials of the connection (a certificate, `kubectl proxy`). */
import { Api, ApiError } from "../api.ts";

/** The key in session storage, which belongs to this tab and is cleared when it is closed. */
const key = "coxswain-token";

export type Session =
  | { readonly state: "asking" }
  | { readonly state: "out"; readonly message: string }
  | { readonly state: "in"; readonly token: string };

/** A path that every authenticated user may read, and no anonymous one. */
const probe = "/apis";

/** Signs in with the token kept for this tab, or without one by the connection's own credentials. */
export async function resume(): Promise<Session> {
  const token = sessionStorage.getItem(key) ?? "";
  const session = await signIn(token);
  return session.state === "out" && token === "" ? { state: "out", message: "" } : session;
}

/** @returns `out` with the reason when the server does not accept it */
export async function signIn(token: string): Promise<Session> {
  try {
    await new Api(token).get(probe);
  } catch (err) {
    if (!(err instanceof ApiError))
      return { state: "out", message: "this is not a token: it contains characters that tokens cannot contain" };
    if (err.code === 401) return { state: "out", message: "the API server does not accept this token" };
    // A user who may not read discovery may still read other resources; without a token a 403 means an anonymous user.
    if (err.code !== 403 || token === "") return { state: "out", message: err.message };
  }
  if (token !== "") sessionStorage.setItem(key, token);
  return { state: "in", token };
}

export function signOut(): void {
  sessionStorage.removeItem(key);
}
