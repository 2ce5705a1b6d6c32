// Stands for a service in another process, which createConnectTransport or createGrpcTransport would lead to.
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { ShelfService } from "./gen/shelf_pb.js";

const titles = new Map();

export const transport = createRouterTransport(({ service }) =>
  service(ShelfService, {
    getBook({ isbn }) {
      const title = titles.get(isbn);
      if (title === undefined) throw new ConnectError(`There is no book ${isbn}.`, Code.NotFound);
      return { isbn, title };
    },
    addBook({ book }) {
      titles.set(book?.isbn, book?.title);
      return book ?? {};
    },
  }),
);
