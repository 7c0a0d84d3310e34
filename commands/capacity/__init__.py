"""kctl capacity: sizing a cluster."""
