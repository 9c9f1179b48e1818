"""The hot path of views: archived transactions in new places, with what newer replicas need around them."""
