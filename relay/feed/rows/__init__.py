"""One table's rows as a lake keeps them: columns, net changes, places that sort, and the reasons why a feed stops."""
