import { Code, ConnectError } from "@connectrpc/connect";
import { ShelfService } from "./gen/shelf_pb.js";

const titles = new Map();

/** @param {import("@connectrpc/connect").ConnectRouter} router */
export const routes = (router) =>
  router.service(ShelfService, {
    getBook({ isbn }) {
      const title = titles.get(isbn);
      if (title === undefined) throw new ConnectError(`There is no book ${isbn}.`, Code.NotFound);
      return { isbn, title };
    },
    addBook({ book }) {
      titles.set(book?.isbn, book?.title);
      return book ?? {};
    },
  });
